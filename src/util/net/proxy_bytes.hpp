// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The numbers of the PROXY protocol's second version (proxy-protocol.txt, 2.2), and how
// they are put into bytes: big endian. For proxy_protocol.cpp alone.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace sluice::proxy_bytes {

inline constexpr std::string_view v2_signature{"\r\n\r\n\0\r\nQUIT\n", 12};
inline constexpr size_t v2_head_bytes = 16; // signature, version and command, kind, length
inline constexpr uint8_t version_2 = 2;
inline constexpr uint8_t command_local = 0, command_proxy = 1;
inline constexpr uint8_t family_unspec = 0, family_inet = 1, family_inet6 = 2, family_unix = 3;
inline constexpr uint8_t transport_stream = 1, transport_dgram = 2;
inline constexpr size_t unix_bytes = 108;
inline constexpr size_t tlv_head_bytes = 3; // type and length
inline constexpr uint8_t tlv_crc32c = 3;
inline constexpr uint16_t credentials_bytes = 12;

inline void put16(std::string &out, uint16_t value)
{
    out += static_cast<char>(value >> 8);
    out += static_cast<char>(value & 255);
}

inline void put32(std::string &out, uint32_t value)
{
    put16(out, static_cast<uint16_t>(value >> 16));
    put16(out, static_cast<uint16_t>(value & 0xffff));
}

// Of the first bytes, which must be there.
inline uint16_t get16(std::string_view bytes)
{
    return static_cast<uint16_t>(static_cast<uint8_t>(bytes[0]) << 8 | static_cast<uint8_t>(bytes[1]));
}

inline uint32_t get32(std::string_view bytes)
{
    return static_cast<uint32_t>(get16(bytes)) << 16 | get16(bytes.substr(2));
}

// CRC-32C (Castagnoli), as RFC 4960, appendix B has it.
inline uint32_t crc32c(std::string_view bytes)
{
    uint32_t crc = ~uint32_t{0};
    for (char c : bytes) {
        crc ^= static_cast<uint8_t>(c);
        for (int bit = 0; bit < 8; ++bit)
            crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
    }
    return ~crc;
}

} // namespace sluice::proxy_bytes
