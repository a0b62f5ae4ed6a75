// Verifies the messages on stdin, or signs one as a server of keys would, with the npm
// packages web-bot-auth and http-message-sig in the directory of the first argument.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { webcrypto as standard } from "node:crypto";

globalThis.crypto ??= standard; // Node 18 has none

const require = createRequire(process.argv[2] + "/of.js");
const bot = require("web-bot-auth");
const { createSignature, verifySignature, webcrypto } = require("http-message-sig");

const member = { name: "signature-agent", parameters: { key: "sig1" } };
const covered = {
  [bot.HTTP_MESSAGE_SIGNATURE_TAG]: ["@authority", member],
  [bot.Tag.HTTP_MESSAGE_SIGNAGURES_DIRECTORY]: [{ name: "@authority", parameters: { req: true } }, "content-digest"],
};

const keyid = (jwk) => bot.jwkToKeyID(jwk, bot.helpers.WEBCRYPTO_SHA256, bot.helpers.BASE64URL_DECODE);
const request = (m) => ({ kind: "request", method: "GET", targetUri: m.url, fields: fields(m.status ? {} : m.headers) });
const message = (m) => (m.status ? { kind: "response", status: m.status, fields: fields(m.headers), request: request(m) } : request(m));
const fields = (headers) => Object.entries(headers).map(([name, value]) => ({ name, value }));

async function verify(m) {
  const keys = new Map();
  for (const jwk of m.keys) keys.set(await keyid(jwk), webcrypto.verifier(await crypto.subtle.importKey("jwk", jwk, "Ed25519", true, ["verify"])));
  await verifySignature(message(m), {
    label: m.label,
    policy: {
      algorithms: ["ed25519"],
      requiredComponents: covered[m.tag],
      requiredParameters: ["created", "expires", "keyid", "tag"],
      validate: (s) => s.parameters.tag === m.tag,
    },
    resolveVerifier: (candidate) => {
      const verifier = keys.get(candidate.parameters.keyid);
      if (!verifier) throw new Error("unknown key " + candidate.parameters.keyid);
      return verifier;
    },
  });
}

async function sign(m) {
  const key = await crypto.subtle.importKey("jwk", m.keys[0], "Ed25519", true, ["sign"]);
  const now = Math.floor(Date.now() / 1000);
  const made = await createSignature(message(m), {
    label: "binding",
    components: covered[m.tag],
    parameters: { created: now, expires: now + 600, keyid: await keyid(m.keys[0]), tag: m.tag },
    signer: webcrypto.signer(key),
  });
  return { "Signature-Input": made.signatureInput, Signature: made.signature };
}

const results = [];
for (const m of JSON.parse(readFileSync(0, "utf8"))) {
  try {
    results.push({ ok: true, headers: m.sign ? await sign(m) : (await verify(m), {}) });
  } catch (err) {
    results.push({ ok: false, error: String(err) });
  }
}
console.log(JSON.stringify(results));
