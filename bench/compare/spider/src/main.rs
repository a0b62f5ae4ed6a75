//! Crawls the sites of its arguments with spider, as plainly as its manual
//! shows: robots.txt obeyed, no delay, four requests a site at once, the sites
//! side by side. What it met stays in memory; the file named first gets a URL a
//! line in the end. It prints how many pages those were.

use spider::tokio;
use spider::website::Website;
use std::io::Write;

#[tokio::main]
async fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.len() < 2 {
        eprintln!("usage: spider-pages FILE URL...");
        std::process::exit(2);
    }
    let mut crawls = Vec::new();
    for seed in args[1..].iter().cloned() {
        crawls.push(tokio::spawn(async move {
            let mut site = Website::new(&seed);
            site.with_respect_robots_txt(true)
                .with_delay(0)
                .with_concurrency_limit(Some(4));
            site.crawl().await;
            site.get_links()
        }));
    }
    let mut out = std::io::BufWriter::new(std::fs::File::create(&args[0]).expect("file of records"));
    let mut pages = 0;
    for crawl in crawls {
        for url in crawl.await.expect("crawl") {
            writeln!(out, "{}", url.as_ref()).expect("record");
            pages += 1;
        }
    }
    out.flush().expect("records");
    println!("{pages}");
}
