package tracing

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// Options configures a Tracer.
type Options struct {
	Endpoint string            // URL that spans are sent to
	Headers  map[string]string // of each request to the collector
	Resource []Attr            // describe this process
	Version  string            // of this program
	Note     func(text string) // receives failures of the collector; may be nil

	sampler sampler
}

// path is added to the address of a collector.
const path = "/v1/traces"

// FromEnvironment returns options from the variables OTEL_* of the OpenTelemetry specification that
// concern traces over HTTP. endpoint, unless "", replaces OTEL_EXPORTER_OTLP_ENDPOINT. ok is false
// if there is no endpoint, or tracing is disabled.
func FromEnvironment(endpoint string, getenv func(string) string) (o Options, ok bool, err error) {
	switch {
	case endpoint != "":
		o.Endpoint = strings.TrimSuffix(endpoint, "/") + path
	case getenv("OTEL_SDK_DISABLED") == "true", getenv("OTEL_TRACES_EXPORTER") == "none":
		return o, false, nil
	case getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != "":
		o.Endpoint = getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
	case getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "":
		o.Endpoint = strings.TrimSuffix(getenv("OTEL_EXPORTER_OTLP_ENDPOINT"), "/") + path
	default:
		return o, false, nil
	}
	u, err := url.Parse(o.Endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return o, false, fmt.Errorf("the address of the OpenTelemetry collector %q is not valid; give one such as "+
			"http://127.0.0.1:4318", o.Endpoint)
	}
	if o.Headers, err = pairs("OTEL_EXPORTER_OTLP_HEADERS", getenv); err != nil {
		return o, false, err
	}
	own, err := pairs("OTEL_EXPORTER_OTLP_TRACES_HEADERS", getenv)
	if err != nil {
		return o, false, err
	}
	for name, value := range own {
		o.Headers[name] = value
	}
	resource, err := pairs("OTEL_RESOURCE_ATTRIBUTES", getenv)
	if err != nil {
		return o, false, err
	}
	if name := getenv("OTEL_SERVICE_NAME"); name != "" {
		resource["service.name"] = name
	} else if resource["service.name"] == "" {
		resource["service.name"] = "sandwich"
	}
	for key, value := range resource {
		o.Resource = append(o.Resource, Attr{key, value})
	}
	o.sampler, err = samplerOf(getenv("OTEL_TRACES_SAMPLER"), getenv("OTEL_TRACES_SAMPLER_ARG"))
	return o, err == nil, err
}

// pairs reads a variable of the form key=value,key=value with percent-encoded values.
func pairs(variable string, getenv func(string) string) (map[string]string, error) {
	out := map[string]string{}
	for _, pair := range strings.Split(getenv(variable), ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		key, value, ok := strings.Cut(pair, "=")
		text, err := url.PathUnescape(strings.TrimSpace(value))
		if key = strings.TrimSpace(key); !ok || key == "" || err != nil {
			return nil, fmt.Errorf("%s is not valid; write it as key=value,key=value", variable) // values may be secret
		}
		out[key] = text
	}
	return out, nil
}

// samplerOf reads OTEL_TRACES_SAMPLER and its argument.
func samplerOf(name, arg string) (sampler, error) {
	s := sampler{ratio: 1}
	name, s.parent = strings.CutPrefix(name, "parentbased_")
	switch name {
	case "":
		s.parent = true
	case "always_on":
	case "always_off":
		s.ratio = 0
	case "traceidratio":
		if arg != "" {
			ratio, err := strconv.ParseFloat(arg, 64)
			if err != nil || !(ratio >= 0 && ratio <= 1) {
				return s, fmt.Errorf("OTEL_TRACES_SAMPLER_ARG=%.40s is not a ratio; give a number from 0 to 1", arg)
			}
			s.ratio = ratio
		}
	default:
		return s, fmt.Errorf("OTEL_TRACES_SAMPLER=%.40s is not supported; use parentbased_always_on, "+
			"parentbased_traceidratio, always_on, always_off or traceidratio", name)
	}
	return s, nil
}
