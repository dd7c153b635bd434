// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The PROXY protocol, versions 1 and 2, as HAProxy's proxy-protocol.txt (revision of
// 2020/03/05) has it: a header in front of a connection's own bytes that says who the
// client is. Nothing here touches a socket.
//
//     peek bytes;  auto ours = reader.feed(peeked);  read exactly *ours bytes;
//     again until reader.done()
//
// Credentials of a unix client travel in a TLV of our own, since the protocol has none:
// type 0xE5, 12 bytes, uid, gid and pid as 32-bit numbers, big endian. One that has
// another length is somebody else's and is not looked at.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/socket.h>

#include "util/base/result.hpp"
#include "util/net/socket_address.hpp"

namespace sluice {

inline constexpr size_t proxy_v1_bytes_max = 107;  // as the protocol says
inline constexpr size_t proxy_v2_bytes_max = 4096; // it could be 65,551; what is sent has a few hundred
inline constexpr uint8_t proxy_tlv_credentials = 0xE5;

// The header for a client that came from `source` to `destination`. IPv4 addresses in
// IPv6 form are sent as IPv4 where both are. What the version has no words for is sent
// without addresses: in v1 all but TCP, as UNKNOWN; in v2 vsock, as LOCAL, since HAProxy
// takes no family 0. HAProxy 2.6 and Envoy do not take the family of unix either, which
// the protocol has: towards them, v1 is what unix clients need.
std::string encode_proxy_v1(const SocketAddress &source, const SocketAddress &destination);
std::string encode_proxy_v2(const SocketAddress &source, const SocketAddress &destination,
                            const std::optional<ucred> &credentials = std::nullopt);

struct ProxyTlv {
    uint8_t type = 0;
    std::string value;
};

struct ProxyHeader {
    // local: the sender speaks for itself (a health check). unknown: it does not know the
    // client. In both the connection's own addresses are all there is.
    enum class Kind { local, unknown, proxied };

    Kind kind = Kind::unknown;
    int version = 0;                   // 1 or 2
    SocketAddress source, destination; // of `proxied` alone; else empty
    std::optional<ucred> credentials;  // v2, from our TLV
    std::vector<ProxyTlv> tlvs;        // v2, of `proxied`, all of them, as they came
};

// Reads one header, in whatever pieces it comes.
class ProxyHeaderReader {
public:
    // Worth peeking at, at most.
    static constexpr size_t peek_bytes = proxy_v2_bytes_max;

    // `peeked` is what comes next on the connection. The result is how many of these bytes
    // belong to the header; exactly they are to be taken off the connection before the
    // next call, and all of them do as long as the header is not done. EPROTO where it is
    // no header, or a broken one, or one that is too long; the connection is to be closed
    // then. Not called again when done or failed.
    Result<size_t> feed(std::string_view peeked);

    bool done() const noexcept { return done_; }
    // Nothing has come yet: the client may just be slow, or waits for the server to begin.
    bool untouched() const noexcept { return bytes_.empty(); }
    const ProxyHeader &header() const noexcept { return header_; }

private:
    Result<size_t> feed_v1(std::string_view peeked);
    Result<size_t> feed_v2(std::string_view peeked);

    std::string bytes_; // of the header, up to now
    ProxyHeader header_;
    bool done_ = false;
};

} // namespace sluice
