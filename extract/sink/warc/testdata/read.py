"""Reads WARC files by warcio or fastwarc and prints a line of JSON a record."""
import hashlib
import json
import sys


def by_warcio(path):
    from warcio.archiveiterator import ArchiveIterator

    with open(path, "rb") as f:
        records = ArchiveIterator(f, check_digests=True)
        for r in records:
            # warcio digests the payload as it stands in the block, chunks and all.
            chunked = r.http_headers and "chunked" in r.http_headers.get_header("Transfer-Encoding", "")
            payload = r.content_stream().read()
            r.raw_stream.read()
            problems = [p for p in r.digest_checker.problems if not (chunked and p.startswith("payload digest"))]
            yield r.rec_headers.headers, r.http_headers, payload, problems


def by_fastwarc(path):
    from fastwarc.warc import ArchiveIterator

    for r in ArchiveIterator(open(path, "rb"), parse_http=False):
        problems = [] if r.verify_block_digest() else ["block digest"]
        is_http = "application/http" in r.headers.get("Content-Type", "")
        if is_http:
            r.parse_http(auto_decode="all")
        yield list(r.headers.items()), r.http_headers, r.reader.read(), problems


for path in sys.argv[2:]:
    for headers, http, payload, problems in globals()["by_" + sys.argv[1]](path):
        named = {name.lower(): value for name, value in headers}
        print(json.dumps({
            "type": named["warc-type"], "id": named["warc-record-id"], "url": named.get("warc-target-uri", ""),
            "truncated": named.get("warc-truncated", ""), "refers": named.get("warc-refers-to", ""),
            "payload": hashlib.sha256(payload).hexdigest(), "size": len(payload), "problems": problems,
        }))
