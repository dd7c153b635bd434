// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Exit codes, from sysexits.h, and which failure has which.

#include <sysexits.h>

#include <cerrno>

#include "remote/relay/pump.hpp"

namespace sluice::helper {

// For an Error of connect_to() and its like.
inline int exit_status_of_connect(int code)
{
    switch (code) {
    case ENOENT:
    case ENOTDIR:
    case ELOOP:
    case ENOTSOCK:
        return EX_NOINPUT;
    case EACCES:
    case EPERM:
        return EX_NOPERM;
    case EINVAL:
    case ENAMETOOLONG:
        return EX_USAGE;
    default:
        return EX_UNAVAILABLE;
    }
}

inline int exit_status_of(const relay::Outcome &outcome)
{
    switch (outcome.kind) {
    case relay::Outcome::Kind::complete:
        return EX_OK;
    case relay::Outcome::Kind::idle_timeout:
        return EX_UNAVAILABLE;
    case relay::Outcome::Kind::failed:
        return EX_IOERR;
    case relay::Outcome::Kind::fin_timeout:
        break;
    }
    // bytes that nobody took are lost; merely waiting in vain is not a loss
    return outcome.undelivered > 0 ? EX_IOERR : EX_UNAVAILABLE;
}

} // namespace sluice::helper
