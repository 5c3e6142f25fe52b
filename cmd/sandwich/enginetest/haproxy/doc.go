// Package haproxy runs replicas of bin/sandwich behind HAProxy with the configuration that `plan
// export --to haproxy` writes: make test-haproxy and make test-restart.
package haproxy
