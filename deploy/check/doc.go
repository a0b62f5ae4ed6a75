// Package check holds the files of deploy against what reads them: manifests are
// decoded strictly into the types of Kubernetes, dashboards into those of Grafana,
// compose files are loaded by the library of compose, each program takes the flags and
// the environment that they give it, a real redis-server the settings, and a real
// Prometheus, which scrapes crawls, the queries and the alerts. It is a module of its own, for nothing else needs those libraries.
package check
