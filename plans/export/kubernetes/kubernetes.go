// Package kubernetes writes manifests for Kubernetes 1.33 and later.
package kubernetes

import (
	"time"

	"sandwich/plans/export/sheet"
)

// Config describes the pods that serve with a plan.
type Config struct {
	Image             string // that the pods run
	Kind              string // of host that the plan was made for; a label value
	PUs               string // that tune could use
	CPUs              int    // whole CPUs of a pod
	MemoryMiB         int64
	DrainDelay, Grace time.Duration // --drain-delay and --grace
}

// preStop is the time that a pod which is about to stop waits for the removal of its endpoint from
// the Service and from proxies, before it gets SIGTERM.
const preStop = 5 * time.Second

// margin is the time that a server takes to end, after its last answer, and more.
const margin = 10 * time.Second

// Write adds the manifests to s: a NodeFeatureRule and a Deployment for one kind of host, and the
// Service, PodDisruptionBudget and InferencePool, which all kinds of hosts share.
func Write(s *sheet.Sheet, c Config) {
	s.Note("A pod gets as many CPUs as tune could use (%s). The static CPU manager assigns any %d whole CPUs", c.PUs,
		c.CPUs)
	s.Note("exclusively; the plan is used with its PUs renumbered where they form an equal part of the machine, and")
	s.Note("--strict refuses to start elsewhere. Tune with the CPUs that a pod shall have, such as under taskset.")
	s.Note("lost: the numbers of the PUs")
	s.Note("kubelet: --cpu-manager-policy=static --topology-manager-policy=single-numa-node, and with SMT")
	s.Note("--cpu-manager-policy-options=full-pcpus-only=true. Equal integer requests and limits reserve CPUs.")
	s.Note("Label the nodes: kubectl label node NODE $(sandwich probe --format label=kubernetes), run on the node,")
	s.Note("or by node-feature-discovery with sandwich.kind=%s in its folder features.d.", c.Kind)
	s.Note("Plans of other kinds of hosts: apply their exports, too. Each has a Deployment of its own; the Service,")
	s.Note("the PodDisruptionBudget and the InferencePool are the same. An InferencePool needs its CRD and a")
	s.Note("picker of endpoints; leave it out without them.")
	s.Note("Nodes use the image %s of the release if it was loaded there, and pull it otherwise; for a registry, write",
		c.Image)
	s.Note("its name before the image.")
	s.Add(rule(c.Kind) + separator)
	stop := preStop + c.DrainDelay + c.Grace + margin
	s.Line(deployment, c.Kind, c.Kind, c.Kind, c.Kind, c.Kind, seconds(stop), c.Image, c.DrainDelay, c.Grace,
		seconds(preStop), c.CPUs, c.MemoryMiB, c.CPUs, c.MemoryMiB)
	s.Add("---\n" + service + separator + budget + separator + pool)
}

// seconds returns a duration in seconds, rounded up.
func seconds(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }

const separator = "\n---\n"

// rule returns a NodeFeatureRule that labels the nodes of a kind of host.
func rule(kind string) string {
	var s sheet.Sheet
	s.Line(nodeFeatureRule, kind)
	text := s.String()
	return text[:len(text)-1]
}

const nodeFeatureRule = `apiVersion: nfd.k8s-sigs.io/v1alpha1
kind: NodeFeatureRule
metadata:
  name: sandwich-%[1]s
spec:
  rules:
    - name: kind of host of the plan
      labels:
        sandwich.dev/kind: "%[1]s"
      matchFeatures:
        - feature: local.feature
          matchExpressions:
            sandwich.kind: {op: In, value: ["%[1]s"]}`

const deployment = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: sandwich-%s
  labels: {app: sandwich, sandwich.dev/kind: "%s"}
spec:
  replicas: 2
  minReadySeconds: 5
  strategy:
    # A node may have no exclusive CPUs for one pod more.
    rollingUpdate: {maxSurge: 0, maxUnavailable: 1}
  selector:
    matchLabels: {app: sandwich, sandwich.dev/kind: "%s"}
  template:
    metadata:
      labels: {app: sandwich, sandwich.dev/kind: "%s", llm-d.ai/engine-type: sandwich}
    spec:
      nodeSelector:
        sandwich.dev/kind: "%s"
      # Above the sum of preStop, --drain-delay and --grace.
      terminationGracePeriodSeconds: %d
      automountServiceAccountToken: false
      securityContext:
        runAsNonRoot: true
        runAsUser: 65532
        runAsGroup: 65532
        fsGroup: 65532
        seccompProfile: {type: RuntimeDefault}
      containers:
        - name: sandwich
          image: %s
          args: ["serve", "--strict", "--plans", "/plans", "--model", "/models/MODEL.gguf",
            "--listen", "0.0.0.0:8080", "--api-key-file", "/keys/keys", "--health-listen", "0.0.0.0:8081",
            "--open-metrics", "--drain-delay", "%s", "--grace", "%s"]
          env:
            - {name: XDG_DATA_HOME, value: /data}
          ports:
            - {name: http, containerPort: 8080}
            - {name: health, containerPort: 8081}
          startupProbe:
            httpGet: {path: /health, port: health}
            periodSeconds: 5
            failureThreshold: 120
          readinessProbe:
            httpGet: {path: /health, port: health}
            periodSeconds: 2
            failureThreshold: 2
          lifecycle:
            preStop:
              sleep: {seconds: %d}
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities: {drop: ["ALL"]}
          resources:
            requests: {cpu: "%d", memory: %dMi}
            limits: {cpu: "%d", memory: %dMi}
          volumeMounts:
            - {name: data, mountPath: /data}
            - {name: plans, mountPath: /plans, readOnly: true}
            - {name: models, mountPath: /models, readOnly: true}
            - {name: keys, mountPath: /keys, readOnly: true}
      volumes:
        - name: data
          emptyDir: {}
        - name: plans
          configMap: {name: sandwich-plans}
        - name: models
          persistentVolumeClaim: {claimName: models, readOnly: true}
        - name: keys
          secret: {secretName: sandwich-keys}`

const service = `apiVersion: v1
kind: Service
metadata:
  name: sandwich
  labels: {app: sandwich}
spec:
  selector: {app: sandwich}
  ports:
    - {name: http, port: 8080, targetPort: http}`

const budget = `apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: sandwich
spec:
  maxUnavailable: 1
  selector:
    matchLabels: {app: sandwich}`

const pool = `apiVersion: inference.networking.k8s.io/v1
kind: InferencePool
metadata:
  name: sandwich
spec:
  targetPorts:
    - number: 8080
  selector:
    matchLabels: {app: sandwich}
  endpointPickerRef:
    name: sandwich-epp
    port: {number: 9002}
    failureMode: FailOpen
`
