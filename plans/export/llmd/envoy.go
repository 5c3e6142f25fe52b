package llmd

// envoy is a proxy on port 8080 that asks the picker on port 9002 of the same host for the endpoint
// of each request. The picker answers in the header x-gateway-destination-endpoint.
const envoy = `admin:
  address:
    socket_address: {address: 127.0.0.1, port_value: 19000}
static_resources:
  listeners:
    - name: inference
      address:
        socket_address: {address: 0.0.0.0, port_value: 8080}
      filter_chains:
        - filters:
            - name: envoy.filters.network.http_connection_manager
              typed_config:
                "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
                stat_prefix: inference
                # Some clients name their conversation in a header with an underscore.
                common_http_protocol_options: {headers_with_underscores_action: ALLOW}
                stream_idle_timeout: 3600s
                route_config:
                  name: inference
                  virtual_hosts:
                    - name: inference
                      domains: ["*"]
                      routes:
                        - match: {prefix: "/"}
                          # A long prompt sends nothing until its first token.
                          route: {cluster: replicas, timeout: 3600s, idle_timeout: 3600s}
                http_filters:
                  - name: envoy.filters.http.ext_proc
                    typed_config:
                      "@type": type.googleapis.com/envoy.extensions.filters.http.ext_proc.v3.ExternalProcessor
                      grpc_service:
                        envoy_grpc: {cluster_name: epp, authority: "localhost:9002"}
                        timeout: 10s
                      processing_mode:
                        request_header_mode: SEND
                        response_header_mode: SEND
                        request_body_mode: FULL_DUPLEX_STREAMED
                        response_body_mode: FULL_DUPLEX_STREAMED
                        request_trailer_mode: SEND
                        response_trailer_mode: SEND
                      message_timeout: 600s
                  - name: envoy.filters.http.router
                    typed_config:
                      "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router
  clusters:
    - name: epp
      type: STATIC
      connect_timeout: 5s
      typed_extension_protocol_options:
        envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
          "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
          explicit_http_config:
            http2_protocol_options: {}
      load_assignment:
        cluster_name: epp
        endpoints:
          - lb_endpoints:
              - endpoint:
                  address:
                    socket_address: {address: 127.0.0.1, port_value: 9002}
    - name: replicas
      type: ORIGINAL_DST
      connect_timeout: 5s
      lb_policy: CLUSTER_PROVIDED
      circuit_breakers:
        thresholds:
          - {max_connections: 10000, max_pending_requests: 10000, max_requests: 10000}
      original_dst_lb_config:
        use_http_header: true
        http_header_name: x-gateway-destination-endpoint
`
