# Everything a developer or CI runs. `make help` lists it.

GO          ?= go
PACKAGES    := ./...
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
FUZZTIME    ?= 10s

export CGO_ENABLED = 0

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## load an embedded table and replay this repository's history; verify every answer
	$(GO) build -o bin/ ./cmd/...
	./bin/sim run --rows 1000000 --readers 2 --commit-every 1s --buckets 2
	./bin/sim run --git .

.PHONY: test
test: ## run all tests
	$(GO) test -timeout 8m $(PACKAGES)

.PHONY: race
race: ## run all tests under the race detector (needs a C compiler)
	CGO_ENABLED=1 $(GO) test -race -short -timeout 15m $(PACKAGES)

.PHONY: lint
lint: ## formatting, vet, staticcheck
	@unformatted="$$(gofmt -l .)"; if [ -n "$$unformatted" ]; then echo "not formatted:"; echo "$$unformatted"; exit 1; fi
	$(GO) vet $(PACKAGES)
	$(GO) run $(STATICCHECK) $(PACKAGES)

.PHONY: conformance
conformance: ## compare with Java Paimon and pypaimon (installs both into .conformance)
	./conformance/install.sh
	TIDELINE_CONFORMANCE=1 $(GO) test -count=1 -timeout 20m ./conformance/...

.PHONY: sim-short
sim-short: ## a minute of verified load on every kind of table
	$(GO) build -o bin/ ./cmd/sim
	./bin/sim run --rows 300000 --readers 2 --commit-every 200ms --table t1
	./bin/sim run --rows 100000 --readers 1 --commit-every 20000 --table t2 --keys zipf --buckets 4
	./bin/sim run --rows 100000 --readers 1 --commit-every 20000 --table t3 --keys hot --batch 10
	./bin/sim run --rows 200000 --readers 1 --commit-every 200ms --table append --buckets 2

.PHONY: bench
bench: ## measure against control kernels; a table here, bench/results.json beside it
	$(GO) run ./bench
	cd bench/peers && $(GO) run ./pebble -json ../results.json

.PHONY: peers
peers: ## compare with pypaimon-rust on one core (needs Python and the network)
	./bench/peers/run.sh T1 3

.PHONY: bench-smoke
bench-smoke: ## one quick round of every benchmark, to see that they run
	$(GO) run ./bench -rows 100000 -rounds 1 -json bin/bench-smoke.json

.PHONY: fuzz-short
fuzz-short: ## ten seconds of fuzzing for every decoder
	@grep -rnoE '^func Fuzz[A-Za-z0-9]+' --include='*_test.go' . | sed 's/:.*func / /' | sort | while read -r file target; do \
	  echo "$$target ($$(dirname $$file))"; $(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) "$$(dirname $$file)" </dev/null || exit 1; \
	done

.PHONY: check
check: lint test race ## what a change must pass

.PHONY: clean
clean: ## remove what the targets made
	rm -rf bin .conformance bench/results.json
