"""Verifies the messages on stdin with the Python package http-message-signatures."""

import base64
import json
import sys
from types import SimpleNamespace

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from http_message_signatures import HTTPMessageVerifier, HTTPSignatureKeyResolver, algorithms

COVERED = {
    "web-bot-auth": ("@authority", '"signature-agent";key="sig1"'),
    "http-message-signatures-directory": ('"@authority";req', '"content-digest"'),
}


class Keys(HTTPSignatureKeyResolver):
    def __init__(self, keys):
        self.keys = {k["kid"]: Ed25519PublicKey.from_public_bytes(base64.urlsafe_b64decode(k["x"] + "=")) for k in keys}

    def resolve_public_key(self, key_id):
        return self.keys[key_id]

    def resolve_private_key(self, key_id):
        raise KeyError(key_id)


def verify(m):
    request = SimpleNamespace(method="GET", url=m["url"], headers={} if m.get("status") else m["headers"])
    message, body = request, None
    if m.get("status"):
        message = SimpleNamespace(status_code=m["status"], headers=m["headers"], request=request)
        body = m["body"].encode()
    verifier = HTTPMessageVerifier(signature_algorithm=algorithms.ED25519, key_resolver=Keys(m["keys"]))
    verifier.verify(message, expect_tag=m["tag"], expect_label=m["label"], require_components=COVERED[m["tag"]], body=body)


results = []
for m in json.load(sys.stdin):
    try:
        verify(m)
        results.append({"ok": True})
    except Exception as err:
        results.append({"ok": False, "error": repr(err)})
json.dump(results, sys.stdout)
