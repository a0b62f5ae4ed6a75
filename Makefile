# Targets for people; each line of help below is one of them.

GO          ?= go
STATICCHECK ?= honnef.co/go/tools/cmd/staticcheck@v0.8.2
TESTFLAGS   ?= -short
VERSION     ?= $(shell git describe --always --dirty 2>/dev/null || echo unknown)
PLATFORMS   := linux/amd64 linux/arm64 darwin/amd64 darwin/arm64

.PHONY: help build demo setup test check fmt vet lint cross bench-once bench bench-crawl bench-https bench-broad bench-units bench-plan bench-scale profile chaos simulate clean

help: ## show this
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' Makefile

build: ## build bin/fetcher and bin/frontier
	$(GO) build -trimpath -ldflags '-s -w -X seine/cmd/internal/boot.release=$(VERSION)' -o bin/ ./cmd/...

demo: build ## crawl a synthetic web in process and check the result (no Redis, no network)
	@$(GO) run ./bench/web/demo -fetcher bin/fetcher

setup: ## install what the tests need and is missing
	scripts/setup

test: setup ## the tests, but for those that take long: about seven minutes on two cores
	$(GO) test $(TESTFLAGS) ./...
	$(GO) -C deploy/check test -count=1 . # its files are outside of the module, so no result is kept

check: fmt vet lint cross ## everything that must hold, as CI runs it: format, vet, staticcheck, every test with the race detector, every benchmark once
	$(MAKE) test TESTFLAGS='-race -shuffle=on -timeout 30m'
	SEINE_INFLATE_CASES=500000 $(GO) test ./extract/inflate # a decoder has no races to find, and the detector slows it by 20
	$(MAKE) bench-once

fmt:
	@out=$$(gofmt -l .); if [ -n "$$out" ]; then echo "gofmt: $$out"; exit 1; fi

vet:
	$(GO) vet ./...
	$(GO) -C bench/compare/colly vet .
	$(GO) -C deploy/check vet .

lint:
	$(GO) run $(STATICCHECK) ./...

cross:
	@for p in $(PLATFORMS); do echo "build $$p"; GOOS=$${p%/*} GOARCH=$${p#*/} CGO_ENABLED=0 $(GO) build ./cmd/... || exit 1; done # of several programs nothing is written

bench-once:
	$(GO) test -run '^$$' -bench . -benchtime 1x ./...

bench: ## the Go benchmarks, and their ratios as a table; OLD=FILE compares with an older run, NEW=FILE shows one that was made
	scripts/bench $(OLD) $(NEW)

chaos: setup ## break fetchers, Redis, network and disk under a crawl, and count what is lost (an hour); writes bench/results
	SEINE_CHAOS=long SEINE_CHAOS_RESULTS=$(CURDIR)/bench/results/chaos.txt $(GO) test -count=1 -v -timeout 4h ./bench/chaos

SEEDS ?= 1000
simulate: ## simulate SEEDS fleets in virtual time, with faults, and check each step (an hour for a thousand)
	SEINE_SIMULATE_SEEDS=$(SEEDS) $(GO) test -count=1 -v -timeout 0 -run TestNewSeeds ./bench/simulate

bench-crawl: build setup ## crawl real documentation: a bare loop, embedded, six masters, other crawlers; plain, packed and over https; writes bench/results
	scripts/bench-crawl

bench-https: build setup ## crawl pages of the web's sizes over https; pages a second and processor, Redis included; writes bench/results
	scripts/bench-crawl https

profile: build setup ## crawl real documentation, and print what the time of a fetcher and of Redis goes to
	PROFILE=yes scripts/bench-crawl

bench-units: setup ## measure the unit costs that frontier plan takes; writes bench/results
	scripts/bench-units

bench-plan: build setup ## plan four crawls from unit costs, run them, and tell how far the plans were off; writes bench/results
	scripts/bench-plan

bench-broad: build setup ## crawl very many sites: what their delays allow, what is reached, what it costs; writes bench/results
	scripts/bench-broad

bench-scale: setup ## fill a crawl with 200 million URLs, measure what each more costs, restart, move and check it (an hour); writes bench/results
	scripts/bench-scale

clean: ## remove what build made
	rm -rf bin
