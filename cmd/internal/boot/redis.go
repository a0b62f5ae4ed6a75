package boot

import (
	"context"
	"os"
	"strings"
	"time"

	"seine/frontier/redis"
	"seine/shard"
)

// RedisFlags say where Redis is and how to get in. Whether it is a cluster is
// found out by asking it.
type RedisFlags struct {
	Redis                     string        `group:"redis" default:"127.0.0.1:6379" placeholder:"ADDR" help:"One server, or some nodes of a cluster: host:port,… or redis://[user:password@]host:port,…[/db]; rediss:// for TLS (${default}). redis+sentinel://NAME@host:port,… names the server that sentinels watch as NAME. The password may be in SEINE_REDIS_PASSWORD."`
	RedisPasswordFile         string        `group:"redis" placeholder:"FILE" help:"File with the password for Redis."`
	RedisUser                 string        `group:"redis" placeholder:"NAME" help:"Redis user; a user in the URL of --redis takes precedence."`
	RedisTLS                  bool          `group:"redis" name:"redis-tls" help:"Use TLS, as with rediss://."`
	RedisCA                   string        `group:"redis" name:"redis-ca" placeholder:"FILE" help:"PEM certificates to trust instead of those of the system."`
	RedisCert                 string        `group:"redis" placeholder:"FILE" help:"PEM certificate of this client."`
	RedisKey                  string        `group:"redis" placeholder:"FILE" help:"PEM key of this client."`
	RedisSentinelPasswordFile string        `group:"redis" placeholder:"FILE" help:"File with the password for the sentinels, if they have one."`
	RedisServerName           string        `group:"redis" placeholder:"NAME" help:"Name that the certificate of the server must have."`
	Ack                       string        `group:"redis" enum:"master,replica" default:"master" placeholder:"WHO" help:"Who must acknowledge an admission: the master, or a replica too (${default})."`
	Lease                     time.Duration `least:"5s" group:"run" default:"60s" placeholder:"D" help:"Time after which the URLs of a killed fetcher return to the queue. Use the same value for all programs of a crawl (${default})."`
}

// Config makes the configuration of a client; name is in CLIENT LIST,
// env is as of os.Environ. A password in the URL counts before one in the file,
// and that before one in the environment.
func (r *RedisFlags) Config(name string, env []string) (shard.Config, error) {
	c := shard.Config{Name: name, Username: r.RedisUser, TLS: shard.TLS{
		Enabled: r.RedisTLS || strings.HasPrefix(r.Redis, "rediss://") || strings.HasPrefix(r.Redis, "rediss+sentinel://"),
		CAFile:  r.RedisCA, CertFile: r.RedisCert, KeyFile: r.RedisKey, ServerName: r.RedisServerName,
	}}
	if strings.Contains(r.Redis, "://") {
		c.Addrs = []string{r.Redis}
	} else {
		c.Addrs = strings.Split(r.Redis, ",")
	}
	if v, ok := lookup(env, passwordEnv); ok {
		c.Password = shard.Secret(v)
	}
	for _, f := range []struct {
		flag, file string
		to         *shard.Secret
	}{{"redis-password-file", r.RedisPasswordFile, &c.Password}, {"redis-sentinel-password-file", r.RedisSentinelPasswordFile, &c.SentinelPassword}} {
		if f.file == "" {
			continue
		}
		text, err := os.ReadFile(f.file)
		if err != nil {
			return c, Usage("%s: %w", f.flag, err)
		}
		*f.to = shard.Secret(strings.TrimRight(string(text), "\r\n"))
	}
	if err := c.Validate(); err != nil {
		return c, Usage("%w", err)
	}
	return c, nil
}

// Frontier is how a program works on a crawl by these flags.
func (r *RedisFlags) Frontier() redis.Config {
	c := redis.Config{Lease: r.Lease}
	if r.Ack == "replica" {
		c.AckReplicas = 1
	}
	return c
}

// LoggedConfig is Config that logs which master the program waits for, and
// what could be better about them.
func (r *RedisFlags) LoggedConfig(name string, env *Env) (shard.Config, error) {
	c, err := r.Config(name, os.Environ())
	c.Metrics = env.Metrics
	c.Warns = func(w shard.Warning) { env.Log.Warn(w.String()) }
	c.Waits = func(w shard.Wait) {
		text := w.String()
		if r.Redis == defaultRedis {
			text += otherRedis
		}
		env.Log.Warn(text, "call", w.Op, "err", w.Err)
	}
	return c, err
}

// giveUp is how long a verb waits for a master: the verb goes on with what the others have.
const giveUp = 5 * time.Second

// Open connects to Redis as the flags and this process's environment say, for verbs that
// end within seconds though a master is silent.
func (r *RedisFlags) Open(ctx context.Context, name string, env *Env) (*shard.Client, error) {
	c, err := r.LoggedConfig(name, env)
	if err != nil {
		return nil, err
	}
	c.GiveUp = giveUp
	return shard.Open(ctx, c)
}

// OpenFit is Open for programs that admit, as of shard.OpenFit.
func (r *RedisFlags) OpenFit(ctx context.Context, name string, env *Env) (*shard.Client, error) {
	c, err := r.LoggedConfig(name, env)
	if err != nil {
		return nil, err
	}
	return shard.OpenFit(ctx, c, r.Frontier().AckReplicas)
}
