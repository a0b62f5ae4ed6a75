package wall

// refusals are the statuses in which walls refuse.
var refusals = []int{401, 403, 405, 406, 429, 503}

// What several rules were read from.
const (
	cloudflareErrors = "https://developers.cloudflare.com/rules/custom-errors/reference/error-page-types/"
	awsActions       = "https://docs.aws.amazon.com/waf/latest/developerguide/waf-captcha-and-challenge-actions.html"
	anubisSource     = "TecharoHQ/anubis, web/index.templ"
	heritrix         = "internetarchive/heritrix3, BotBlockDetector"
	wafw00f          = "EnableSecurity/wafw00f, plugins"
	isAntibot        = "microlinkhq/is-antibot, providers.json"
	fixtures         = "answers quoted in public test suites of detectors"
)

// table is the rules that everybody has.
var table = []Rule{
	// Cloudflare
	{Vendor: "cloudflare", Sure: Certain, Header: []string{"cf-mitigated: challenge"},
		Source: "https://developers.cloudflare.com/cloudflare-challenges/challenge-types/challenge-pages/detect-response/"},
	{Vendor: "cloudflare", Sure: Certain, Status: refusals, Header: []string{"server: cloudflare"}, Body: []string{"<title>just a moment...</title>"}, Source: cloudflareErrors},
	{Vendor: "cloudflare", Sure: Certain, Status: refusals, Header: []string{"server: cloudflare"}, Body: []string{"<title>attention required! | cloudflare</title>"}, Source: cloudflareErrors},
	{Vendor: "cloudflare", Sure: Certain, Status: refusals, Header: []string{"server: cloudflare"}, Body: []string{" used cloudflare to restrict access</title>"},
		Source: "https://developers.cloudflare.com/support/troubleshooting/http-status-codes/cloudflare-1xxx-errors/"},
	{Vendor: "cloudflare", Sure: Likely, Body: []string{"<title>just a moment...</title>"}, Source: cloudflareErrors},
	{Vendor: "cloudflare", Sure: Likely, Status: refusals, Header: []string{"crawler-error: crawlerforbidden"},
		Source: "https://developers.cloudflare.com/ai-crawl-control/features/pay-per-crawl/use-pay-per-crawl-as-ai-owner/error-codes/"},
	{Vendor: "cloudflare", Sure: Hint, Status: refusals, Header: []string{"server: cloudflare"}, Source: wafw00f},

	// AWS WAF
	{Vendor: "aws-waf", Sure: Certain, Status: []int{202}, Header: []string{"x-amzn-waf-action: challenge"}, Source: awsActions},
	{Vendor: "aws-waf", Sure: Certain, Status: []int{405}, Header: []string{"x-amzn-waf-action: captcha"}, Source: awsActions},
	{Vendor: "aws-waf", Sure: Likely, Header: []string{"x-amzn-waf-action"}, Source: awsActions},
	{Vendor: "aws-waf", Sure: Likely, Body: []string{"window.gokuprops"}, Source: fixtures},
	{Vendor: "aws-waf", Sure: Likely, Status: []int{403}, Body: []string{"<title>error: the request could not be satisfied</title>", "request blocked."},
		Source: "https://docs.aws.amazon.com/AmazonCloudFront/latest/DeveloperGuide/http-403-permission-denied.html"},
	{Vendor: "aws-waf", Sure: Hint, Status: refusals, Header: []string{"server: awselb"}, Source: wafw00f},

	// Akamai
	{Vendor: "akamai", Sure: Certain, Status: []int{403}, Body: []string{"<title>access denied</title>", "edgesuite"}, Source: fixtures},
	{Vendor: "akamai", Sure: Certain, Body: []string{`id="sec-if-cpt-container"`}, Source: fixtures},
	{Vendor: "akamai", Sure: Certain, Body: []string{"#sec-if-cpt-container"}, Source: fixtures},
	{Vendor: "akamai", Sure: Certain, Body: []string{`http-equiv="refresh"`, "bm-verify="}, Source: fixtures},
	{Vendor: "akamai", Sure: Likely, Status: []int{428, 429}, Body: []string{`"sec-cp-challenge"`}, Source: fixtures},
	{Vendor: "akamai", Sure: Hint, Status: refusals, Header: []string{"server: akamaighost"}, Source: heritrix},

	// DataDome
	{Vendor: "datadome", Sure: Certain, Status: refusals, Header: []string{"x-datadome: protected", "x-dd-b"}, Source: heritrix},
	{Vendor: "datadome", Sure: Certain, Status: refusals, Body: []string{"var dd={", "captcha-delivery.com"}, Source: fixtures},
	{Vendor: "datadome", Sure: Certain, Body: []string{`<script data-cfasync="false">var dd={`, "captcha-delivery.com"}, Source: fixtures},
	{Vendor: "datadome", Sure: Certain, Status: refusals, Body: []string{`"url":"https://geo.captcha-delivery.com/`}, Source: fixtures},
	{Vendor: "datadome", Sure: Certain, Status: refusals, Body: []string{"captcha-delivery.com/c.js"}, Source: fixtures},
	{Vendor: "datadome", Sure: Hint, Status: refusals, Header: []string{"x-datadome"}, Source: isAntibot},
	{Vendor: "datadome", Sure: Hint, Status: refusals, Header: []string{"server: datadome"}, Source: wafw00f},

	// HUMAN, formerly PerimeterX
	{Vendor: "human", Sure: Certain, Body: []string{`content="px-captcha"`}, Source: fixtures},
	{Vendor: "human", Sure: Certain, Status: refusals, Body: []string{"window._pxappid"}, Source: isAntibot},
	{Vendor: "human", Sure: Certain, Status: refusals, Body: []string{`"appid":"px`, `"blockscript"`}, Source: fixtures},
	{Vendor: "human", Sure: Certain, Status: []int{403}, Body: []string{"<title>access to this page has been denied"}, Source: fixtures},
	{Vendor: "human", Sure: Likely, Body: []string{"<title>access to this page has been denied"}, Source: fixtures},
	{Vendor: "human", Sure: Hint, Status: refusals, Header: []string{"set-cookie: _pxhd="}, Source: isAntibot},

	// Imperva, formerly Incapsula and Distil
	{Vendor: "imperva", Sure: Certain, Body: []string{`id="main-iframe" src="/_incapsula_resource?`}, Source: fixtures},
	{Vendor: "imperva", Sure: Certain, Status: refusals, Body: []string{"request unsuccessful. incapsula incident id"}, Source: heritrix},
	{Vendor: "imperva", Sure: Certain, Header: []string{"x-iinfo"}, Body: []string{"request unsuccessful. incapsula incident id"}, Source: heritrix},
	{Vendor: "imperva", Sure: Certain, Header: []string{"x-iinfo"}, Body: []string{"<title>pardon our interruption"}, Source: wafw00f},
	{Vendor: "imperva", Sure: Likely, Body: []string{"<title>pardon our interruption"}, Source: wafw00f},
	{Vendor: "imperva", Sure: Hint, Status: refusals, Header: []string{"x-iinfo"}, Source: isAntibot},
	{Vendor: "imperva", Sure: Hint, Status: refusals, Header: []string{"x-cdn: incapsula"}, Source: isAntibot},
	{Vendor: "imperva", Sure: Hint, Status: refusals, Header: []string{"x-cdn: imperva"}, Source: isAntibot},

	// Sucuri
	{Vendor: "sucuri", Sure: Certain, Status: refusals, Header: []string{"x-sucuri-block"}, Source: wafw00f},
	{Vendor: "sucuri", Sure: Certain, Status: refusals, Body: []string{"<title>sucuri website firewall"}, Source: wafw00f},
	{Vendor: "sucuri", Sure: Certain, Body: []string{"<title>you are being redirected...</title>", "sucuri_cloudproxy_js"}, Source: fixtures},
	{Vendor: "sucuri", Sure: Hint, Status: refusals, Header: []string{"x-sucuri-id"}, Source: wafw00f},
	{Vendor: "sucuri", Sure: Hint, Status: refusals, Header: []string{"server: sucuri"}, Source: wafw00f},

	// Vercel
	{Vendor: "vercel", Sure: Certain, Header: []string{"x-vercel-mitigated: challenge"}, Source: isAntibot},
	{Vendor: "vercel", Sure: Certain, Header: []string{"x-vercel-mitigated: deny"}, Source: "https://vercel.com/docs/vercel-firewall"},
	{Vendor: "vercel", Sure: Certain, Status: refusals, Body: []string{"<title>vercel security checkpoint</title>"}, Source: "https://vercel.com/docs/vercel-firewall/attack-challenge-mode"},
	{Vendor: "vercel", Sure: Hint, Status: refusals, Header: []string{"server: vercel"}, Source: fixtures},

	// Fastly
	{Vendor: "fastly", Sure: Certain, Body: []string{"<title>client challenge</title>", "/_fs-ch-"},
		Source: "https://www.fastly.com/documentation/guides/security/client-challenges/serving-challenges-with-interstitial-pages/"},
	{Vendor: "fastly", Sure: Hint, Status: refusals, Header: []string{"x-served-by: cache-"}, Source: wafw00f},

	// Kasada
	{Vendor: "kasada", Sure: Certain, Status: []int{403, 429}, Header: []string{"x-kpsdk-ct"}, Source: "TheWebScrapingClub/webscraping-from-0-to-hero, Kasada.md"},
	{Vendor: "kasada", Sure: Certain, Status: []int{403, 429}, Body: []string{"window.kpsdk"}, Source: fixtures},
	{Vendor: "kasada", Sure: Certain, Status: []int{403, 429}, Body: []string{"/149e9513-01fa-4fb0-aad4-566afd725d1b/2d206a39-8ed7-437e-a3be-862e0f06eea3/ips.js"}, Source: fixtures},

	// F5
	{Vendor: "f5", Sure: Certain, Body: []string{"<title>request rejected</title>", "the requested url was rejected. please consult with your administrator"}, Source: wafw00f},
	{Vendor: "f5", Sure: Certain, Body: []string{`href="data:;base64,ivborw0kggo="`, `window["bobcmn"]`}, Source: fixtures},
	{Vendor: "f5", Sure: Likely, Body: []string{`window["bobcmn"]`}, Source: fixtures},
	{Vendor: "f5", Sure: Hint, Status: refusals, Header: []string{"server: bigip"}, Source: wafw00f},
	{Vendor: "f5", Sure: Hint, Status: refusals, Header: []string{"server: big-ip"}, Source: wafw00f},

	// Anubis, and its like
	{Vendor: "anubis", Sure: Certain, Body: []string{`="/.within.website/x/`}, Source: anubisSource},
	{Vendor: "anubis", Sure: Certain, Body: []string{`<script id="anubis_`}, Source: anubisSource},
	{Vendor: "anubis", Sure: Certain, Header: []string{"location: /.within.website/?redir="}, Source: heritrix},
	{Vendor: "anubis", Sure: Hint, Status: refusals, Header: []string{"set-cookie: techaro.lol-anubis"}, Source: heritrix},
	{Vendor: "go-away", Sure: Certain, Body: []string{`="/.well-known/.git.gammaspectra.live/git/go-away/`}, Source: "pow-buster 0.2.0, its client of go-away"},
	{Vendor: "go-away", Sure: Certain, Header: []string{"location: __goaway_challenge="}, Source: "pow-buster 0.2.0, its client of go-away"},
	{Vendor: "cerberus", Sure: Certain, Header: []string{"x-cerberus-status: challenge"}, Source: "https://github.com/sjtug/cerberus"},
	{Vendor: "haproxy-protection", Sure: Certain, Body: []string{`="/.basedflare/`}, Source: "haproxy-protection, its bot-check page"},
	{Vendor: "haproxy-protection", Sure: Certain, Header: []string{"location: /.basedflare/bot-check"}, Source: "haproxy-protection, its bot-check page"},

	// Others
	{Vendor: "siteground", Sure: Certain, Header: []string{"sg-captcha: challenge"}, Source: fixtures},
	{Vendor: "siteground", Sure: Certain, Body: []string{`http-equiv="refresh"`, "/.well-known/sgcaptcha/"}, Source: fixtures},
	{Vendor: "ddos-guard", Sure: Certain, Body: []string{"<title>ddos-guard</title>", "/.well-known/ddos-guard/"}, Source: fixtures},
	{Vendor: "ddos-guard", Sure: Hint, Status: refusals, Header: []string{"server: ddos-guard"}, Source: wafw00f},
	{Vendor: "imunify360", Sure: Certain, Header: []string{"server: imunify360-webshield"}, Body: []string{"<title>one moment, please...</title>"}, Source: fixtures},
	{Vendor: "imunify360", Sure: Likely, Body: []string{"<title>one moment, please...</title>"}, Source: fixtures},
	{Vendor: "imunify360", Sure: Hint, Status: refusals, Header: []string{"server: imunify360-webshield"}, Source: wafw00f},
	{Vendor: "aliyun", Sure: Certain, Header: []string{"set-cookie: acw_tc="}, Body: []string{"<script>var arg1='"}, Source: fixtures},
	{Vendor: "aliyun", Sure: Certain, Status: []int{405}, Body: []string{"errors.aliyun.com"}, Source: wafw00f},
	{Vendor: "aliyun", Sure: Likely, Body: []string{"<script>var arg1='"}, Source: fixtures},
	{Vendor: "azure", Sure: Certain, Status: []int{403}, Header: []string{"x-azure-ref"}, Body: []string{"the request is blocked."},
		Source: "https://learn.microsoft.com/azure/web-application-firewall/afds/waf-front-door-configure-custom-response-code"},
	{Vendor: "radware", Sure: Certain, Header: []string{"location: ://validate.perfdrive.com/"}, Source: fixtures},
	{Vendor: "reblaze", Sure: Certain, Status: []int{247}, Body: []string{"window.rbzns={"}, Source: fixtures},
	{Vendor: "reblaze", Sure: Certain, Body: []string{"<script>;;window.rbzns={"}, Source: fixtures},
	{Vendor: "wordfence", Sure: Certain, Status: []int{403, 503}, Body: []string{"<title>your access to this site has been limited"}, Source: "https://www.wordfence.com/help/blocking/"},
	{Vendor: "modsecurity", Sure: Certain, Status: []int{403, 406}, Body: []string{"this error was generated by mod_security"}, Source: wafw00f},
	{Vendor: "testcookie", Sure: Certain, Body: []string{`src="/aes.js"`, "function tonumbers(d)"}, Source: "kyprizel/testcookie-nginx-module, README"},
	{Vendor: "amazon", Sure: Certain, Status: []int{503}, Body: []string{"api-services-support@amazon.com", "automated access to amazon data"}, Source: fixtures},
	{Vendor: "google", Sure: Certain, Header: []string{"location: google.com/sorry/"}, Source: fixtures},
	{Vendor: "yandex", Sure: Certain, Header: []string{"location: /showcaptcha?"}, Source: fixtures},

	// Pages of nobody in particular
	{Vendor: "unknown", Sure: Likely, Body: []string{"enable javascript and cookies to continue"}, Source: fixtures},
	{Vendor: "unknown", Sure: Likely, Body: []string{"checking your browser before accessing"}, Source: fixtures},
	{Vendor: "unknown", Sure: Likely, Body: []string{"<title>verify you are human"}, Source: fixtures},
	{Vendor: "unknown", Sure: Likely, Body: []string{"<title>human verification"}, Source: fixtures},
	{Vendor: "unknown", Sure: Likely, Body: []string{"<title>are you a robot"}, Source: fixtures},
	{Vendor: "unknown", Sure: Likely, Body: []string{"<title>robot check"}, Source: fixtures},
	{Vendor: "unknown", Sure: Likely, Body: []string{"<title>bot verification"}, Source: fixtures},
	{Vendor: "unknown", Sure: Likely, Status: refusals, Body: []string{"<title>captcha"}, Source: fixtures},
	{Vendor: "unknown", Sure: Likely, Status: refusals, Body: []string{"<title>security check"}, Source: fixtures},
	{Vendor: "unknown", Sure: Likely, Status: refusals, Body: []string{"unusual traffic from your"}, Source: fixtures},
}
