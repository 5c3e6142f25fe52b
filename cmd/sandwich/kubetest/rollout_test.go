package kubetest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// requests is the smallest number of requests during a rollout.
const requests = 300

// get returns the body of a page.
func get(url string) (string, error) {
	res, err := http.Get(url)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return string(text), err
}

// traffic sends requests until it is stopped.
type traffic struct {
	t            *testing.T
	url          string
	minimum      int64
	quit         chan struct{} // closed: end with enough requests
	abort        atomic.Bool   // end at once
	workers      sync.WaitGroup
	sent, failed atomic.Int64
}

// startTraffic starts workers that send requests one at a time: half of them over one connection
// each as long as the server keeps it, the others over a new connection each time.
func startTraffic(t *testing.T, address string, minimum int64) *traffic {
	tr := &traffic{t: t, url: "http://" + address + "/v1/chat/completions", minimum: minimum,
		quit: make(chan struct{})}
	for w := range 4 {
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: w%2 == 0}}
		tr.workers.Go(func() { tr.work(w, client) })
	}
	t.Cleanup(func() {
		tr.abort.Store(true)
		tr.workers.Wait()
	})
	return tr
}

func (tr *traffic) work(w int, client *http.Client) {
	defer client.CloseIdleConnections()
	for i := 0; !tr.abort.Load(); i++ {
		select {
		case <-tr.quit:
			if tr.sent.Load() >= tr.minimum {
				return
			}
		default:
		}
		err := tr.ask(client, fmt.Sprintf("Tell me story %d of %d.", i, w), i%2 == 0)
		tr.sent.Add(1)
		if err != nil && tr.failed.Add(1) <= 5 {
			tr.t.Errorf("request %d: %v", tr.sent.Load(), err)
		}
	}
}

// ask sends a request and checks that the answer is complete.
func (tr *traffic) ask(client *http.Client, text string, stream bool) error {
	body, err := json.Marshal(map[string]any{"max_tokens": 12, "stream": stream,
		"messages": []map[string]string{{"role": "user", "content": text}}})
	if err != nil {
		return err
	}
	req, err := http.NewRequest(http.MethodPost, tr.url, strings.NewReader(string(body)))
	if err != nil {
		return err
	}
	req.GetBody = nil // net/http must not hide a lost connection by sending the request again
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+apiKey)
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(res.Body, 500))
		return fmt.Errorf("status %d: %s", res.StatusCode, text)
	}
	if !stream {
		var answer struct {
			Choices []struct{ Message struct{ Content string } }
		}
		if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
			return err
		}
		if len(answer.Choices) != 1 || answer.Choices[0].Message.Content == "" {
			return fmt.Errorf("not an answer: %+v", answer)
		}
		_, err = io.Copy(io.Discard, res.Body)
		return err
	}
	done := false
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() {
		done = done || lines.Text() == "data: [DONE]"
	}
	if !done {
		return fmt.Errorf("the stream ended early: %v", lines.Err())
	}
	return nil
}

// stop returns when at least the required number of requests was answered.
func (tr *traffic) stop() {
	close(tr.quit)
	tr.workers.Wait()
	tr.t.Logf("%d of %d requests failed", tr.failed.Load(), tr.sent.Load())
}

// testRollout replaces both pods, as `kubectl rollout restart` does, while requests run to the
// Service. None fails.
func (r *run) testRollout(t *testing.T) {
	ctx := context.Background()
	service, err := r.Client.CoreV1().Services("default").Get(ctx, "sandwich", meta.GetOptions{})
	check(t, err)
	tr := startTraffic(t, service.Spec.ClusterIP+":8080", requests)
	old := map[types.UID]bool{}
	for _, p := range r.pods() {
		old[p.UID] = true
	}
	const patch = `{"spec": {"template": {"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": "now"}}}}}`
	deployments := r.Client.AppsV1().Deployments("default")
	list, err := deployments.List(ctx, meta.ListOptions{})
	check(t, err)
	if len(list.Items) != 1 {
		t.Fatalf("%d Deployments", len(list.Items))
	}
	name := list.Items[0].Name
	_, err = deployments.Patch(ctx, name, types.StrategicMergePatchType, []byte(patch), meta.PatchOptions{})
	check(t, err)
	err = r.Await("the rollout is complete", func() bool {
		d, err := deployments.Get(ctx, name, meta.GetOptions{})
		if err != nil {
			return false
		}
		for _, p := range r.pods() {
			if old[p.UID] {
				return false
			}
		}
		s := d.Status
		return s.ObservedGeneration >= d.Generation && s.UpdatedReplicas == nodes && s.Replicas == nodes &&
			s.AvailableReplicas == nodes
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, r.describe())
	}
	tr.stop()
}
