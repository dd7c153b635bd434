// SPDX-License-Identifier: LGPL-2.1-or-later
#include "util/net/libvirt_uri.hpp"

#include <algorithm>
#include <cstdlib>

#include <glib.h>
#include <strings.h>
#include <unistd.h>

#include "config.h"
#include "util/base/printable.hpp"
#include "util/net/format.hpp"

namespace sluice {

namespace {

enum class Mode { automatic, legacy, direct };

// RFC 3986, as far as libvirt looks at it. Path and query values are decoded.
struct Uri {
    std::string driver;
    std::string transport; // lower case, may be empty
    std::string server;
    std::string path;
    std::optional<std::string> mode;
    std::optional<std::string> socket;
};

tl::unexpected<Error> bad(std::string_view uri, const std::string &fault)
{
    return fail(EINVAL, format(_("bad libvirt URI '{}': {}"), printable(uri), fault));
}

bool is_scheme(std::string_view text)
{
    auto allowed = [](char c) { return g_ascii_isalnum(c) || c == '+' || c == '-' || c == '.'; };
    return !text.empty() && g_ascii_isalpha(text[0]) && std::all_of(text.begin(), text.end(), allowed);
}

std::optional<std::string> percent_decoded(std::string_view text)
{
    std::string out;
    for (size_t at = 0; at < text.size(); ++at) {
        if (text[at] != '%') {
            out += text[at];
            continue;
        }
        int high = at + 1 < text.size() ? g_ascii_xdigit_value(text[at + 1]) : -1;
        int low = at + 2 < text.size() ? g_ascii_xdigit_value(text[at + 2]) : -1;
        if (high < 0 || low < 0 || (high == 0 && low == 0))
            return std::nullopt;
        out += static_cast<char>(high * 16 + low);
        at += 2;
    }
    return out;
}

bool same_word(std::string_view a, const char *b)
{
    return strncasecmp(a.data(), b, a.size()) == 0 && b[a.size()] == '\0';
}

// Parameters are separated by & or ;, their names in either case; the last one counts.
bool read_query(std::string_view query, Uri &uri)
{
    while (!query.empty()) {
        size_t end = std::min(query.find_first_of("&;"), query.size());
        std::string_view parameter = query.substr(0, end);
        query.remove_prefix(std::min(end + 1, query.size()));
        size_t equals = std::min(parameter.find('='), parameter.size());
        auto name = percent_decoded(parameter.substr(0, equals));
        auto value = percent_decoded(parameter.substr(std::min(equals + 1, parameter.size())));
        if (!name || !value)
            return false;
        if (same_word(*name, "mode"))
            uri.mode = *value;
        else if (same_word(*name, "socket"))
            uri.socket = *value;
    }
    return true;
}

Result<Uri> parse_uri(std::string_view text, bool with_query)
{
    if (text.find('\0') != std::string_view::npos)
        return bad(text, _("it has a NUL byte in it"));
    size_t colon = text.find(':');
    if (colon == std::string_view::npos || !is_scheme(text.substr(0, colon)))
        return bad(text, _("it has no scheme; write for example qemu:///system"));
    std::string_view scheme = text.substr(0, colon);
    std::string_view rest = text.substr(colon + 1);
    rest = rest.substr(0, rest.find('#'));
    size_t question = std::min(rest.find('?'), rest.size());
    std::string_view query = rest.substr(std::min(question + 1, rest.size()));
    rest = rest.substr(0, question);

    Uri uri;
    size_t plus = std::min(scheme.find('+'), scheme.size());
    uri.driver = scheme.substr(0, plus);
    for (char c : scheme.substr(std::min(plus + 1, scheme.size())))
        uri.transport += g_ascii_tolower(c);
    if (plus < scheme.size() && uri.transport.empty())
        return bad(text, _("the transport after + is empty; leave the + out, or write +unix"));
    if (rest.starts_with("//")) {
        rest.remove_prefix(2);
        size_t slash = std::min(rest.find('/'), rest.size());
        uri.server = rest.substr(0, slash);
        rest = rest.substr(slash);
    }
    auto path = percent_decoded(rest);
    if (!path || (with_query && !read_query(query, uri)))
        return bad(text, _("a % in it is not followed by two hexadecimal digits (other than 00)"));
    uri.path = *path;
    return uri;
}

Result<Mode> mode_of(std::string_view text, const Uri &uri)
{
    if (!uri.mode || *uri.mode == "auto")
        return Mode::automatic;
    if (*uri.mode == "legacy")
        return Mode::legacy;
    if (*uri.mode == "direct")
        return Mode::direct;
    return bad(text, format(_("unknown mode '{}'; it is auto, legacy or direct"), printable(*uri.mode)));
}

bool exists(const std::string &path)
{
    return access(path.c_str(), F_OK) == 0;
}

std::optional<std::string> find_program(const std::string &name, const std::vector<std::string> &dirs)
{
    for (const std::string &dir : dirs) {
        std::string path = dir + "/" + name;
        if (!g_file_test(path.c_str(), G_FILE_TEST_IS_DIR) && access(path.c_str(), X_OK) == 0)
            return path;
    }
    return std::nullopt;
}

void append_dirs(std::vector<std::string> &dirs, std::string_view list)
{
    while (!list.empty()) {
        size_t end = std::min(list.find(':'), list.size());
        std::string dir(list.substr(0, end));
        // an empty entry of PATH is the folder we happen to be in: not for daemons
        if (!dir.empty() && std::find(dirs.begin(), dirs.end(), dir) == dirs.end())
            dirs.push_back(dir);
        list.remove_prefix(std::min(end + 1, list.size()));
    }
}

} // namespace

LibvirtHost LibvirtHost::from_environment()
{
    LibvirtHost host;
    host.run_dir = SLUICE_RUNSTATEDIR;
    host.user_run_dir = g_get_user_runtime_dir();
    host.is_root = geteuid() == 0;
    const char *autostart = std::getenv("LIBVIRT_AUTOSTART");
    host.autostart = autostart == nullptr || std::string_view(autostart) != "0";

    const char *only_dir = std::getenv("VIRTD_PATH");
    if (only_dir == nullptr)
        only_dir = std::getenv("LIBVIRTD_PATH");
    if (only_dir != nullptr) {
        host.daemon_dirs = {only_dir};
        return host;
    }
    append_dirs(host.daemon_dirs, SLUICE_SBINDIRS);
    if (const char *path = std::getenv("PATH"))
        append_dirs(host.daemon_dirs, path);
    return host;
}

Result<LibvirtSocket> find_libvirt_socket(std::string_view text, const LibvirtOptions &options, const LibvirtHost &host)
{
    auto uri = parse_uri(text, options.read_query);
    if (!uri)
        return tl::unexpected<Error>(uri.error());
    if (!uri->transport.empty() && uri->transport != "unix")
        return bad(text, format(_("transport '{}' leads to another machine; leave it out, this end connects to daemons "
                                  "of its own machine alone"),
                                printable(uri->transport)));
    if (!uri->server.empty())
        return bad(text, format(_("it names the host '{}'; leave that out (three slashes, as in qemu:///system), this "
                                  "end connects to daemons of its own machine alone"),
                                printable(uri->server)));
    auto mode = mode_of(text, *uri);
    if (!mode)
        return tl::unexpected<Error>(mode.error());

    LibvirtSocket found;
    if (uri->socket) {
        if (uri->socket->empty())
            return bad(text, _("the socket parameter is empty; write ?socket=/path"));
        found.path = *uri->socket;
        found.read_only = options.read_only;
        return found;
    }

    bool of_test = uri->driver == "test" && !uri->transport.empty() && !uri->path.empty();
    bool session = !host.is_root && (uri->path == "/session" || of_test);
    found.read_only = options.read_only && !session;
    std::string dir = (session ? host.user_run_dir : host.run_dir) + "/libvirt";
    std::string suffix = found.read_only ? "-sock-ro" : "-sock";
    std::string direct = "virt" + uri->driver + "d";
    std::string legacy = "libvirtd";
    std::string direct_path = dir + "/" + direct + suffix;
    std::string legacy_path = dir + "/libvirt" + suffix;

    if (*mode == Mode::automatic) {
        if (exists(direct_path))
            *mode = Mode::direct;
        else if (exists(legacy_path))
            *mode = Mode::legacy;
        else
            *mode = find_program(direct, host.daemon_dirs) ? Mode::direct : Mode::legacy;
    }
    found.path = *mode == Mode::direct ? direct_path : legacy_path;
    found.daemon = *mode == Mode::direct ? direct : legacy;
    if (!session || !host.autostart)
        return found;
    if (auto program = find_program(found.daemon, host.daemon_dirs))
        found.autostart = DaemonStart{*program, {"--timeout=120"}, dir, dir + "/" + found.daemon + ".lock"};
    return found;
}

bool is_libvirt_uri(std::string_view text)
{
    size_t colon = text.find(':');
    if (colon == std::string_view::npos || !text.substr(colon + 1).starts_with('/'))
        return false;
    std::string_view scheme = text.substr(0, colon);
    return is_scheme(scheme) && !same_word(scheme, "unix") && !same_word(scheme, "tcp") && !same_word(scheme, "vsock");
}

} // namespace sluice
