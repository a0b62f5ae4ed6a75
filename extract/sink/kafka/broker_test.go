package kafka

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"seine/extract/sink/sinktest"
)

// broker is Apache Kafka on this machine's Java.
type broker struct {
	jars, config, addr string
	cmd                *exec.Cmd
}

// newBroker starts one from the directory of jars that SEINE_TEST_KAFKA names:
// org.apache.kafka:kafka_2.13 and what it depends on, as mvn
// dependency:copy-dependencies leaves them.
func newBroker(t *testing.T) *broker {
	t.Helper()
	b := &broker{jars: os.Getenv("SEINE_TEST_KAFKA")}
	if b.jars == "" || testing.Short() {
		t.Skip("SKIPPED, needs SEINE_TEST_KAFKA, a directory with Kafka's jars, and time")
	}
	var ports [2]string
	for i := range ports {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		ports[i] = l.Addr().String()
	}
	b.addr = ports[0]
	dir := t.TempDir()
	b.config = filepath.Join(dir, "server.properties")
	text := fmt.Sprintf("process.roles=broker,controller\nnode.id=1\ncontroller.quorum.voters=1@%[1]s\nlisteners=PLAINTEXT://%[2]s,CONTROLLER://%[1]s\n"+
		"controller.listener.names=CONTROLLER\nlog.dirs=%[3]s\noffsets.topic.replication.factor=1\n", ports[1], ports[0], filepath.Join(dir, "data"))
	if err := os.WriteFile(b.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := b.java("kafka.tools.StorageTool", "format", "-t", "AAAAAAAAQACAAAAAAAAAAQ", "-c", b.config).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	b.start(t)
	t.Cleanup(func() { b.kill() })
	return b
}

func (b *broker) java(args ...string) *exec.Cmd {
	return exec.Command("java", append([]string{"-Xmx256m", "-cp", filepath.Join(b.jars, "*")}, args...)...)
}

func (b *broker) start(t *testing.T) {
	t.Helper()
	b.cmd = b.java("kafka.Kafka", b.config)
	if err := b.cmd.Start(); err != nil {
		t.Fatal(err)
	}
}

func (b *broker) kill() {
	b.cmd.Process.Kill()
	b.cmd.Wait()
}

// A broker killed in the middle and restarted has every record once.
func TestBrokerKilled(t *testing.T) {
	b := newBroker(t)
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.addr))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	create := kmsg.NewPtrCreateTopicsRequest()
	of := kmsg.NewCreateTopicsRequestTopic()
	of.Topic, of.NumPartitions, of.ReplicationFactor = topic, partitions, 1
	create.Topics = append(create.Topics, of)
	deadline := time.Now().Add(time.Minute)
	for {
		resp, err := create.RequestWith(t.Context(), cl)
		if err == nil && resp.Topics[0].ErrorCode == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the broker does not come up: ", err)
		}
	}
	s := openAt(t, b.addr)
	const n = 20_000
	done := make(chan error, n)
	for i := range n {
		r := sinktest.Record(i)
		r.Site = fmt.Sprint("site", i%50)
		s.Write(r, func(err error) { done <- err })
		if i == n/2 {
			b.kill()
			for s.Err() == nil && time.Now().Before(deadline) {
				time.Sleep(10 * time.Millisecond)
			}
			b.start(t)
		}
	}
	for range n {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s.QueueStats().Retries == 0 {
		t.Error("the broker's death was not noticed")
	}
	seen := map[string]bool{}
	for _, u := range urls(t, b.addr) {
		if seen[u] {
			t.Errorf("%s is there twice", u)
		}
		seen[u] = true
	}
	if len(seen) != n {
		t.Errorf("%d of %d records", len(seen), n)
	}
}
