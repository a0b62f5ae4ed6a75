package redis_test

import (
	"context"

	"seine/frontier/audit"
	"seine/frontier/redis"
)

func init() {
	redis.AuditCheck = func(ctx context.Context, f *redis.Frontier, k int, urls bool) (*redis.Audited, error) {
		return audited(audit.Check(ctx, f, k, urls))
	}
	redis.AuditRepair = func(ctx context.Context, f *redis.Frontier, k int, urls bool) (*redis.Audited, error) {
		return audited(audit.Repair(ctx, f, k, urls))
	}
}

func audited(r *audit.Report, err error) (*redis.Audited, error) {
	return (*redis.Audited)(r), err
}
