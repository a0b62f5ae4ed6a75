package check

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// built is where the programs are, once somebody asked for them; "" before.
var built string

// programs builds the programs once, and says where.
var programs = sync.OnceValues(func() (dir string, err error) {
	if built, err = os.MkdirTemp("", "deploy"); err != nil {
		return "", err
	}
	build := exec.Command("go", "build", "-ldflags", "-X seine/cmd/internal/boot.release=1.2.3", "-o", built+"/", "./cmd/...")
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return built, nil
})

// bin is where the programs are.
func bin(t *testing.T) string {
	t.Helper()
	dir, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestMain(m *testing.M) {
	code := m.Run()
	os.RemoveAll(built)
	os.Exit(code)
}

// objects are those of a file or of all manifests, decoded strictly.
func objects(t *testing.T) []runtime.Object {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{appsv1.AddToScheme, autoscalingv2.AddToScheme, batchv1.AddToScheme, corev1.AddToScheme, policyv1.AddToScheme, networkingv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	files, err := filepath.Glob("../k8s/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(err, files)
	}
	var all []runtime.Object
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for r := yaml.NewDocumentDecoder(io.NopCloser(bytes.NewReader(text))); ; {
			doc := make([]byte, len(text))
			n, err := r.Read(doc)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			o, _, err := decoder.Decode(doc[:n], nil, nil)
			if err != nil {
				t.Errorf("%s: %v", file, err)
				continue
			}
			all = append(all, o)
		}
	}
	return all
}

// template is the pods of an object, with its name and selector.
func template(o runtime.Object) (name string, pod *corev1.PodTemplateSpec, selector map[string]string) {
	switch o := o.(type) {
	case *appsv1.StatefulSet:
		return o.Name, &o.Spec.Template, o.Spec.Selector.MatchLabels
	case *appsv1.Deployment:
		return o.Name, &o.Spec.Template, o.Spec.Selector.MatchLabels
	case *batchv1.Job:
		return o.Name, &o.Spec.Template, nil
	}
	return "", nil, nil
}

// Manifests decode strictly; pods run without rights on a root that is read only;
// selectors, ports and names lead somewhere; programs take what they are given.
func TestKubernetes(t *testing.T) {
	all := objects(t)
	pods, names := map[string]*corev1.PodTemplateSpec{}, map[string]bool{} // pods by their label app
	secrets := map[string]map[string]string{}
	for _, o := range all {
		switch o := o.(type) {
		case *corev1.Secret:
			secrets[o.Name] = o.StringData
		case *corev1.ConfigMap:
			secrets[o.Name] = o.Data
		}
		name, pod, selector := template(o)
		if pod == nil {
			continue
		}
		names[name] = true
		pods[pod.Labels["app"]] = pod
		if selector != nil && selector["app"] != pod.Labels["app"] {
			t.Errorf("%s selects %v, its pods are %v", name, selector, pod.Labels)
		}
	}
	kinds := map[string]int{}
	for _, o := range all {
		switch o := o.(type) {
		case *corev1.Service:
			kinds["service"]++
			pod := pods[o.Spec.Selector["app"]]
			if pod == nil {
				t.Errorf("Service %s selects no pods", o.Name)
				continue
			}
			for _, p := range o.Spec.Ports {
				if !slices.ContainsFunc(pod.Spec.Containers[0].Ports, func(c corev1.ContainerPort) bool { return c.ContainerPort == p.Port }) {
					t.Errorf("Service %s: no container has port %d", o.Name, p.Port)
				}
			}
		case *policyv1.PodDisruptionBudget:
			kinds["budget"]++
			if pods[o.Spec.Selector.MatchLabels["app"]] == nil {
				t.Errorf("PodDisruptionBudget %s selects no pods", o.Name)
			}
			if p := o.Spec.UnhealthyPodEvictionPolicy; p == nil || *p != policyv1.AlwaysAllow {
				t.Errorf("PodDisruptionBudget %s: pods that are not ready hold up a drain", o.Name)
			}
		case *networkingv1.NetworkPolicy:
			kinds["policy"]++
			if pods[o.Spec.PodSelector.MatchLabels["app"]] == nil {
				t.Errorf("NetworkPolicy %s selects no pods", o.Name)
			}
		case *autoscalingv2.HorizontalPodAutoscaler:
			kinds["autoscaler"]++
			if !names[o.Spec.ScaleTargetRef.Name] {
				t.Errorf("HorizontalPodAutoscaler %s scales nothing", o.Name)
			}
			if m := o.Spec.Metrics; len(m) != 1 || m[0].External == nil || m[0].External.Metric.Name != "seine_frontier_fetchers_at_limit" {
				t.Errorf("HorizontalPodAutoscaler %s goes by %v", o.Name, m)
			}
		}
		name, pod, _ := template(o)
		if pod == nil {
			continue
		}
		kinds["pods"]++
		if s := pod.Spec.SecurityContext; s == nil || s.RunAsNonRoot == nil || !*s.RunAsNonRoot || s.RunAsUser == nil || *s.RunAsUser == 0 {
			t.Errorf("%s may run as root", name)
		}
		for _, c := range pod.Spec.Containers {
			checkContainer(t, name, pod, &c, secrets)
		}
	}
	if kinds["service"] < 3 || kinds["budget"] < 2 || kinds["policy"] < 2 || kinds["autoscaler"] != 1 || kinds["pods"] < 4 {
		t.Errorf("too little was looked at: %v", kinds)
	}
}

func checkContainer(t *testing.T, name string, pod *corev1.PodTemplateSpec, c *corev1.Container, secrets map[string]map[string]string) {
	t.Helper()
	if s := c.SecurityContext; s == nil || s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation {
		t.Errorf("%s: its root can be written, or it may get more rights", name)
	}
	if strings.HasSuffix(c.Image, ":latest") || !strings.Contains(c.Image, ":") {
		t.Errorf("%s: image %s has no version", name, c.Image)
	}
	ports := map[string]bool{}
	for _, p := range c.Ports {
		ports[p.Name] = true
	}
	for _, p := range []*corev1.Probe{c.StartupProbe, c.LivenessProbe, c.ReadinessProbe} {
		if p != nil && p.HTTPGet != nil && !ports[p.HTTPGet.Port.StrVal] {
			t.Errorf("%s: a probe asks port %v, which it has not", name, p.HTTPGet.Port)
		}
	}
	var env []string
	for _, from := range c.EnvFrom {
		source := ""
		if from.SecretRef != nil {
			source = from.SecretRef.Name
		} else {
			source = from.ConfigMapRef.Name
		}
		if secrets[source] == nil {
			t.Errorf("%s: there is no %s", name, source)
		}
		for k, v := range secrets[source] {
			env = append(env, k+"="+v)
		}
	}
	switch {
	case strings.HasPrefix(c.Image, "seine:"):
		words := append(slices.Clone(c.Command), c.Args...)
		if len(c.Command) == 0 {
			words = append([]string{"fetcher"}, words...)
		}
		takes(t, name, words, env)
	case len(c.Args) > 0 && c.Args[0] == "redis-server":
		starts(t, name, c.Args[1:])
		if p := c.ReadinessProbe; p == nil || p.Exec == nil || !strings.Contains(strings.Join(p.Exec.Command, " "), "PONG") {
			t.Errorf("%s is ready before it answers PONG", name)
		}
		if l := c.Lifecycle; l == nil || l.PreStop == nil || l.PreStop.Exec == nil {
			t.Errorf("%s does not hand over before it ends", name)
		} else if out, err := exec.Command("sh", "-n", "-c", l.PreStop.Exec.Command[2]).CombinedOutput(); err != nil {
			t.Errorf("%s: preStop: %v: %s", name, err, out)
		}
	}
}

// takes fails unless a program takes a command line and an environment.
func takes(t *testing.T, name string, words, env []string) {
	t.Helper()
	var out bytes.Buffer
	cmd := exec.Command(filepath.Join(bin(t), words[0]), append(slices.Clone(words[1:]), "--print-config")...)
	if words[0] == "sh" { // whose program the flag reaches as the last of its arguments
		cmd = exec.Command(words[0], append(slices.Clone(words[1:]), "--print-config")...)
	}
	cmd.Env = append(env, "PATH="+bin(t)+":/usr/bin:/bin", "HOSTNAME=pod")
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if err != nil {
		t.Errorf("%s: %v: %v\n%s", name, words, err, &out)
	}
	all, err := exec.Command(filepath.Join(bin(t), "fetcher"), "--print-config").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range env { // a setting of either program; what is given is what is in effect
		variable, value, _ := strings.Cut(e, "=")
		flag := strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(variable, "SEINE_"), "_", "-"))
		switch line := "\n" + flag + ": "; {
		case flag == "redis-password": // no flag: process lists show flags
		case strings.Contains(out.String(), "\n# "+flag+":"), strings.Contains(out.String(), line) && !strings.Contains(out.String(), line+value):
			t.Errorf("%s: %s has no effect:\n%s", name, e, &out)
		case !strings.Contains(string(all), line) && !strings.Contains(string(all), "\n# "+flag+":"):
			t.Errorf("%s: %s names no flag", name, variable)
		}
	}
}

// starts fails unless a redis-server takes its settings. Addresses and directories are
// the test's own.
func starts(t *testing.T, name string, args []string) {
	t.Helper()
	program, err := exec.LookPath("redis-server")
	if err != nil {
		t.Logf("SKIPPED, needs redis-server: settings of %s", name)
		return
	}
	dir := t.TempDir()
	for i, a := range args {
		args[i] = strings.NewReplacer("$(PASSWORD)", "secret", "$(IP)", "127.0.0.1", "/etc/seine/redis.conf", "../redis.conf", "--dir /data", "--dir "+dir).Replace(a)
	}
	args = append(slices.Clone(args), "--port", "0", "--unixsocket", filepath.Join(dir, "s"), "--dir", dir, "--cluster-port", "0")
	if slices.Contains(args, "--cluster-enabled yes") || !slices.Contains(args, "--cluster-enabled") {
		args = append(args, "--cluster-enabled", "no") // it would need a port
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	out, err := cmd.StdoutPipe()
	if err == nil {
		cmd.Stderr = cmd.Stdout
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	for buf := make([]byte, 4096); !strings.Contains(said.String(), "eady to accept connections"); {
		n, err := out.Read(buf)
		said.Write(buf[:n])
		if err != nil {
			t.Errorf("%s: redis-server %v does not start:\n%s", name, args, &said)
			break
		}
	}
	cmd.Process.Kill()
	cmd.Wait()
}

// The servers of the example are set as deploy/redis.conf says, but for what is the
// container's.
func TestKubernetesRedisIsAsRedisConf(t *testing.T) {
	text, err := os.ReadFile("../redis.conf")
	if err != nil {
		t.Fatal(err)
	}
	own := []string{"bind", "port", "protected-mode", "client-output-buffer-limit"}
	for _, o := range objects(t) {
		name, pod, _ := template(o)
		if name != "seine-redis" {
			continue
		}
		for line := range strings.Lines(string(text)) {
			line = strings.TrimSpace(line)
			directive, _, _ := strings.Cut(line, " ")
			if line == "" || line[0] == '#' || slices.Contains(own, directive) {
				continue
			}
			if !slices.Contains(pod.Spec.Containers[0].Args, "--"+line) {
				t.Errorf("redis.conf has %q, deploy/k8s/redis.yaml has not", line)
			}
		}
		return
	}
	t.Error("no seine-redis")
}

// project loads a compose file as compose does.
func project(t *testing.T, file string) *types.Project {
	t.Helper()
	o, err := cli.NewProjectOptions([]string{file}, cli.WithProfiles([]string{"*"}),
		cli.WithEnv([]string{"SEINE_CONTACT=https://example.com/bot", "GRAFANA_PASSWORD=x"}), cli.WithInterpolation(true))
	if err != nil {
		t.Fatal(err)
	}
	p, err := o.LoadProject(t.Context())
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return p
}

// Compose files load; what they mount is there; programs and servers take what they
// are given; what fetches has no rights and a root that is read only.
func TestCompose(t *testing.T) {
	for file, least := range map[string]int{"../compose.yaml": 6 + 6 + 6, "../compose.single.yaml": 3} {
		p := project(t, file)
		if len(p.Services) < least {
			t.Errorf("%s has %d services", file, len(p.Services))
		}
		addresses := map[string]string{}
		for name, s := range p.Services {
			for _, v := range s.Volumes {
				if v.Type != types.VolumeTypeBind {
					continue
				}
				if _, err := os.Stat(v.Source); err != nil {
					t.Errorf("%s: %s mounts %v", file, name, err)
				}
			}
			for _, n := range s.Networks {
				if n != nil && n.Ipv4Address != "" {
					if other, taken := addresses[n.Ipv4Address]; taken {
						t.Errorf("%s and %s have one address, %s", name, other, n.Ipv4Address)
					}
					addresses[n.Ipv4Address] = name
				}
			}
			switch {
			case strings.HasPrefix(s.Image, "seine:"):
				if !s.ReadOnly || !slices.Contains(s.CapDrop, "ALL") {
					t.Errorf("%s: %s has a root that can be written, or rights", file, name)
				}
				var env []string
				for k, v := range s.Environment {
					env = append(env, k+"="+*v)
				}
				takes(t, name, unescape(append(slices.Clone(s.Entrypoint), s.Command...)), env)
			case len(s.Command) > 0 && s.Command[0] == "redis-server":
				if name == "redis" || name == "redis-1" { // the others are the same
					starts(t, name, s.Command[1:])
				}
			}
		}
		if file == "../compose.yaml" {
			create := strings.Join(p.Services["cluster"].Command, " ")
			for address, name := range addresses {
				if !strings.Contains(create, address+":6379 ") {
					t.Errorf("%s, %s, is in no cluster", name, address)
				}
			}
			if len(addresses) != 12 {
				t.Errorf("%d nodes", len(addresses))
			}
		}
	}
}

// Units are hardened, and their programs take what they are given.
func TestUnits(t *testing.T) {
	units, err := filepath.Glob("../*.service")
	if err != nil || len(units) != 4 {
		t.Fatal(err, units)
	}
	analyze, missing := exec.LookPath("systemd-analyze")
	if missing != nil && os.Getenv("CI") != "" {
		t.Fatal(missing)
	}
	for _, unit := range units {
		text, err := os.ReadFile(unit)
		if err != nil {
			t.Fatal(err)
		}
		start := regexp.MustCompile(`(?m)^ExecStart=/usr/local/bin/(.+)$`).FindStringSubmatch(string(text))
		if start == nil || !strings.Contains(string(text), "\nRestartPreventExitStatus=2\n") {
			t.Errorf("%s starts nothing, or again and again after a mistake", unit)
			continue
		}
		token := filepath.Join(t.TempDir(), "token")
		if err := os.WriteFile(token, []byte("0123456789abcdef"), 0o600); err != nil {
			t.Fatal(err)
		}
		words := strings.Fields(strings.NewReplacer("/etc/seine/", "../", "%i", "1", "${CREDENTIALS_DIRECTORY}/token", token).Replace(start[1]))
		takes(t, unit, words, nil)
		if missing != nil {
			t.Log("SKIPPED, needs systemd-analyze: the rights of ", unit)
			continue
		}
		file := filepath.Join(t.TempDir(), strings.Replace(filepath.Base(unit), "@", "@1", 1))
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(analyze, "security", "--offline=true", "--threshold=30", "--no-pager", file).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", unit, err, out)
		}
	}
}

// unescape gives words as the container gets them.
func unescape(words []string) []string {
	for i, w := range words {
		words[i] = strings.ReplaceAll(w, "$$", "$")
	}
	return words
}

// What .dockerignore leaves is enough to build the programs.
func TestImageContext(t *testing.T) {
	root := filepath.Join("..", "..")
	text, err := os.ReadFile(filepath.Join(root, ".dockerignore"))
	if err != nil {
		t.Fatal(err)
	}
	var without []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			without = append(without, line)
		}
	}
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, e := range entries {
		if slices.ContainsFunc(without, func(p string) bool { ok, _ := filepath.Match(p, e.Name()); return ok }) {
			continue
		}
		from, err := filepath.Abs(filepath.Join(root, e.Name()))
		if err == nil && e.IsDir() {
			err = os.CopyFS(filepath.Join(dir, e.Name()), os.DirFS(from))
		} else if err == nil {
			var b []byte
			if b, err = os.ReadFile(from); err == nil {
				err = os.WriteFile(filepath.Join(dir, e.Name()), b, 0o600)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	list := exec.Command("go", "list", "-deps", "./cmd/...") // fails where a package or an embedded file is missing
	list.Dir = dir
	if out, err := list.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// The image runs without rights, and has the version and the contact that it is built with.
func TestImage(t *testing.T) {
	text, err := os.ReadFile("../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	_, last, _ := strings.Cut(string(text), "\nFROM alpine:")
	for _, want := range []string{"\nUSER 65534:65534\n", "\nARG CONTACT=\n", "\nENV SEINE_CONTACT=$CONTACT\n", "image.version=$VERSION\n", "\nENTRYPOINT [\"fetcher\"]\n"} {
		if !strings.Contains(last, want) {
			t.Errorf("the image lacks %q", want)
		}
	}
	if !strings.Contains(string(text), "-X seine/cmd/internal/boot.release=$VERSION") || strings.LastIndex(last, "\nRUN") > strings.LastIndex(last, "\nUSER") {
		t.Error("the programs are built without their version, or something runs after the user has no rights")
	}
}

// The version that the image is built with is the programs'.
func TestVersion(t *testing.T) {
	out, err := exec.Command(filepath.Join(bin(t), "fetcher"), "--version").Output()
	if err != nil || strings.TrimSpace(string(out)) != "fetcher 1.2.3" {
		t.Errorf("%v: %s", err, out)
	}
}

// Prometheus takes its file and the rules that it names.
func TestPrometheus(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("SKIPPED, needs promtool; scripts/setup installs it")
	}
	cmd := exec.Command(promtool, "check", "config", "prometheus.yaml")
	cmd.Dir = ".."
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
