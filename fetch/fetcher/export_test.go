package fetcher

// Workers is workers.
var Workers = workers
