"""Crawls the sites of its arguments with Scrapy, as plainly as its manual shows:
every page of the hosts of the seeds once, robots.txt obeyed, four requests a host
at once, no delay, a JSON line a page in the file named first. It prints how many
pages those were."""

import sys
from urllib.parse import urlsplit

from scrapy import Spider
from scrapy.crawler import CrawlerProcess
from scrapy.http import TextResponse
from scrapy.linkextractors import LinkExtractor


class Pages(Spider):
    name = "pages"
    handle_httpstatus_all = True
    links = LinkExtractor(
        tags=("a", "area", "iframe", "frame"), attrs=("href", "src"), deny_extensions=[]
    )

    def parse(self, response):
        found = []
        if isinstance(response, TextResponse) and response.status == 200:
            found = [link.url for link in self.links.extract_links(response)]
        yield {
            "url": response.url,
            "status": response.status,
            "type": response.headers.get("Content-Type", b"").decode(),
            "links": found,
        }
        for url in found:
            if urlsplit(url).scheme in ("http", "https"):
                yield response.follow(url)


def main(out, seeds):
    process = CrawlerProcess(
        {
            "ROBOTSTXT_OBEY": True,
            "CONCURRENT_REQUESTS": 256,
            "CONCURRENT_REQUESTS_PER_DOMAIN": 4,
            "DOWNLOAD_DELAY": 0,
            "RETRY_ENABLED": False,
            "TELNETCONSOLE_ENABLED": False,
            "LOG_LEVEL": "ERROR",
            "FEEDS": {out: {"format": "jsonlines"}},
        }
    )
    crawler = process.create_crawler(Pages)
    hosts = [urlsplit(seed).hostname for seed in seeds]
    process.crawl(crawler, start_urls=seeds, allowed_domains=hosts)
    process.start()
    print(crawler.stats.get_value("item_scraped_count", 0))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
