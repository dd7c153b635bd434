// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Which socket of this machine a libvirt URI means, by the rules of libvirt 9.0:
//
//  - `DRIVER:///PATH` and `DRIVER+unix:///PATH`; a host or another transport is refused.
//  - `/session`, and any path of `test+unix`, mean the user's own daemon unless the
//    user is root; all else the system's. So do root's sessions.
//  - Direct is the driver's own daemon, `virtDRIVERd`: virtDRIVERd-sock. Legacy is
//    `libvirtd`: libvirt-sock. System daemons have a second, read-only one: -sock-ro.
//  - `?mode=direct` or `legacy` chooses; `auto` (the default) takes direct where its
//    socket exists, else legacy where that exists, else the one whose daemon is
//    installed, direct first (libvirt itself has this last step fixed when it is built).
//  - `?socket=PATH` is that socket, whatever the rest says, and nothing is started.
//  - A session daemon that does not run is started, with `--timeout=120`; a system
//    daemon never.
//
// The mode and socket parameters are read by libvirt's client (remote_driver) but not
// by virt-ssh-helper(8), which ignores the query.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "util/base/result.hpp"
#include "util/net/autostart.hpp"

namespace sluice {

// What the answer depends on besides the URI; tests put their own folders here.
struct LibvirtHost {
    std::string run_dir;                  // of the system's daemons, without /libvirt
    std::string user_run_dir;             // of the user's, without /libvirt
    std::vector<std::string> daemon_dirs; // where their programs are looked for, in this order
    bool is_root = false;
    bool autostart = true;

    // SLUICE_RUNSTATEDIR; XDG_RUNTIME_DIR or else the user's cache folder; VIRTD_PATH,
    // LIBVIRTD_PATH or else SLUICE_SBINDIRS and PATH; LIBVIRT_AUTOSTART (not for "0").
    static LibvirtHost from_environment();
};

struct LibvirtOptions {
    bool read_only = false;
    bool read_query = true; // false: as virt-ssh-helper
};

struct LibvirtSocket {
    std::string path;
    bool read_only = false;               // asked for, and there is such a socket
    std::string daemon;                   // who should listen on it; empty for ?socket=
    std::optional<DaemonStart> autostart; // who to start if nobody does
};

// EINVAL, with a message that names the URI and what to write instead.
Result<LibvirtSocket> find_libvirt_socket(std::string_view uri, const LibvirtOptions &options, const LibvirtHost &host);

// Is this a URI (`SCHEME:/...`) and none of the forms that parse_address() takes?
bool is_libvirt_uri(std::string_view text);

} // namespace sluice
