// SPDX-License-Identifier: LGPL-2.1-or-later
#include "interop/libvirtd.hpp"

#include <sys/un.h>
#include <unistd.h>

namespace sluice::test {
namespace {

constexpr uid_t nobody = 65534;

} // namespace

std::string Libvirtd::program()
{
    for (const char *path : {"/usr/sbin/libvirtd", "/usr/local/sbin/libvirtd", "/usr/bin/libvirtd"})
        if (access(path, X_OK) == 0)
            return path;
    return {};
}

Libvirtd::Libvirtd()
{
    const uid_t user = geteuid() == 0 ? nobody : 0;
    for (const char *folder : {"", "socket", "pool", "config", "cache", "data", "run"}) {
        std::filesystem::create_directories(dir_ / folder);
        if (user != 0)
            must(chown((dir_ / folder).c_str(), user, user), "chown");
    }
    std::ofstream(dir_ / "libvirtd.conf") << "unix_sock_dir = \"" << (dir_ / "socket") << "\"\n"
                                          << "auth_unix_ro = \"none\"\n"
                                          << "auth_unix_rw = \"none\"\n"
                                          << "log_outputs = \"3:stderr\"\n";
    // it leaves when nobody has been connected for so long, should this program be killed
    child_ = Command({program(), "-f", dir_ / "libvirtd.conf", "-p", dir_ / "libvirtd.pid", "-t", "60"})
                 .env("HOME", dir_ / "")
                 .env("XDG_CONFIG_HOME", dir_ / "config")
                 .env("XDG_CACHE_HOME", dir_ / "cache")
                 .env("XDG_DATA_HOME", dir_ / "data")
                 .env("XDG_RUNTIME_DIR", dir_ / "run")
                 .as_user(user)
                 .start();
    bool ended = false;
    eventually([&] { return answers() || (ended = child_.wait(Deadline(0)).has_value()); });
    if (ended || !answers())
        throw std::runtime_error("libvirtd does not answer: " + child_.errors());
}

// A stopped process would not hear of its end.
Libvirtd::~Libvirtd()
{
    if (child_.pid() > 0)
        resume();
}

void Libvirtd::kill()
{
    child_.kill(SIGKILL);
    if (!child_.wait())
        throw std::runtime_error("libvirtd survives SIGKILL");
}

bool Libvirtd::answers() const
{
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    socket_path().copy(address.sun_path, sizeof address.sun_path - 1);
    UniqueFd probe(must(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket"));
    return connect(probe.get(), reinterpret_cast<sockaddr *>(&address), sizeof address) == 0;
}

std::string remote_uri(const std::string &driver, const std::string &path, const std::string &socket)
{
    return driver + "+unix://" + path + "?socket=" + socket;
}

} // namespace sluice::test
