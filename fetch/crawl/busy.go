package crawl

// Busy reports whether processors or Redis bound the crawl as it was judged last,
// so that work that can wait should.
func (w *Worker) Busy() bool {
	bound := w.limit.get()
	return bound == limitCPU || bound == limitRedis
}
