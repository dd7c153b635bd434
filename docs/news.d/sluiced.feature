sluiced, a proxy for stream services that systemd's sockets activate, in the place of
systemd-socket-proxyd: half-closes are passed on, a stop drains, a reload is all or nothing,
limits are hard, and several services, upstreams, access rules, PROXY headers, rates and
timeouts are configured in a file. sluice shows what it does and gives it orders.
