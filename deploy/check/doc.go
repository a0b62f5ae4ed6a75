// Package check holds the files of deploy against what reads them: manifests are
// decoded strictly into the types of Kubernetes, compose files are loaded by the
// library of compose, each program takes the flags and the environment that they give
// it, and a real redis-server the settings. It is a module of its own, for nothing else
// needs those libraries.
package check
