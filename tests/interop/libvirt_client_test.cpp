// SPDX-License-Identifier: LGPL-2.1-or-later

// A libvirt client whose events run on libsluice: within the process (the test
// driver) and over the wire with a daemon of its own. With `--thread` another thread
// than the one that calls libvirt runs the loop.

#include <algorithm>
#include <cstring>
#include <span>
#include <string_view>

#include <gtest/gtest.h>
#include <libvirt/libvirt.h>
#include <libvirt/virterror.h>

#include "interop/event_host.hpp"
#include "interop/libvirtd.hpp"
#include "interop/rpc_tap.hpp"
#include "support/pattern.hpp"

namespace sluice::test {
namespace {

EventHost *host; // made by main(), which registers it before any connection

struct Closer {
    void operator()(virConnectPtr conn) const { virConnectClose(conn); }
    void operator()(virDomainPtr domain) const { virDomainFree(domain); }
    void operator()(virStoragePoolPtr pool) const { virStoragePoolFree(pool); }
    void operator()(virStorageVolPtr volume) const { virStorageVolFree(volume); }
    void operator()(virStreamPtr stream) const { virStreamFree(stream); }
};
template <class T>
using Owned = std::unique_ptr<std::remove_pointer_t<T>, Closer>;

// What libvirt calls a free function for; counts how often it does.
struct Counted {
    int frees = 0;
    static void free(void *opaque)
    {
        host->change([&] { static_cast<Counted *>(opaque)->frees++; });
    }
};

Owned<virConnectPtr> connect(const std::string &uri)
{
    Owned<virConnectPtr> conn(virConnectOpen(uri.c_str()));
    EXPECT_TRUE(conn) << uri << ": " << virGetLastErrorMessage();
    return conn;
}

// After each test nothing of it may be left in the loop.
class LibvirtClient : public testing::Test {
protected:
    void TearDown() override { EXPECT_TRUE(host->until_idle()); }
};

// --- libvirt's own event calls ----------------------------------------------------

struct Pipe : Counted {
    Ends ends = make_pipe();
    std::string heard;
    int expiries = 0;

    static void on_readable(int, int fd, int events, void *opaque)
    {
        char block[16];
        const ssize_t got = (events & VIR_EVENT_HANDLE_READABLE) ? read(fd, block, sizeof block) : 0;
        host->change([&] { static_cast<Pipe *>(opaque)->heard.append(block, static_cast<size_t>(std::max(got, 0L))); });
    }
    static void on_expiry(int timer, void *opaque)
    {
        virEventUpdateTimeout(timer, -1);
        host->change([&] { static_cast<Pipe *>(opaque)->expiries++; });
    }
};

TEST_F(LibvirtClient, VirEventCallsReachTheLoop)
{
    Pipe pipe;
    const int watch =
        virEventAddHandle(pipe.ends.first.get(), VIR_EVENT_HANDLE_READABLE, Pipe::on_readable, &pipe, Counted::free);
    const int timer = virEventAddTimeout(-1, Pipe::on_expiry, &pipe, Counted::free);
    ASSERT_GT(watch, 0);
    ASSERT_GT(timer, 0);
    must(int(write(pipe.ends.second.get(), "ping", 4)), "write");
    EXPECT_TRUE(host->until([&] { return pipe.heard == "ping"; }));
    virEventUpdateTimeout(timer, 1);
    EXPECT_TRUE(host->until([&] { return pipe.expiries == 1; }));
    virEventUpdateHandle(watch, 0);
    EXPECT_EQ(virEventRemoveHandle(watch), 0);
    EXPECT_EQ(virEventRemoveHandle(watch), -1);
    EXPECT_EQ(virEventRemoveTimeout(timer), 0);
    EXPECT_TRUE(host->until([&] { return pipe.frees == 2; }));
}

// --- domain lifecycle -------------------------------------------------------------

struct Lifecycle : Counted {
    std::vector<int> events;

    // libvirt takes a function only once for the same events, so there are several
    template <int>
    static int on_event(virConnectPtr, virDomainPtr, int event, int, void *opaque)
    {
        host->change([&] { static_cast<Lifecycle *>(opaque)->events.push_back(event); });
        return 0;
    }
    template <int Nth>
    int attach(virConnectPtr conn)
    {
        return virConnectDomainEventRegisterAny(conn, nullptr, VIR_DOMAIN_EVENT_ID_LIFECYCLE,
                                                VIR_DOMAIN_EVENT_CALLBACK(on_event<Nth>), this, free);
    }
};

void live_and_die(const std::string &uri)
{
    Lifecycle deregistered, kept;
    auto conn = connect(uri);
    ASSERT_TRUE(conn);
    const int first = deregistered.attach<1>(conn.get());
    ASSERT_GE(first, 0) << virGetLastErrorMessage();
    const int second = kept.attach<2>(conn.get());
    ASSERT_GE(second, 0) << virGetLastErrorMessage();

    Owned<virDomainPtr> domain(virDomainLookupByName(conn.get(), "test"));
    ASSERT_TRUE(domain) << virGetLastErrorMessage();
    ASSERT_EQ(virDomainSuspend(domain.get()), 0);
    ASSERT_EQ(virDomainResume(domain.get()), 0);
    ASSERT_EQ(virDomainDestroy(domain.get()), 0);
    ASSERT_EQ(virDomainCreate(domain.get()), 0);

    const std::vector<int> expected = {VIR_DOMAIN_EVENT_SUSPENDED, VIR_DOMAIN_EVENT_RESUMED, VIR_DOMAIN_EVENT_STOPPED,
                                       VIR_DOMAIN_EVENT_STARTED};
    EXPECT_TRUE(host->until([&] { return kept.events.size() >= 4 && deregistered.events.size() >= 4; }));
    EXPECT_EQ(kept.events, expected);
    EXPECT_EQ(deregistered.events, expected);

    EXPECT_EQ(virConnectDomainEventDeregisterAny(conn.get(), first), 0);
    EXPECT_TRUE(host->until([&] { return deregistered.frees == 1; }));
    ASSERT_EQ(virDomainSuspend(domain.get()), 0);
    EXPECT_TRUE(host->until([&] { return kept.events.size() == 5; }));
    EXPECT_EQ(deregistered.events.size(), 4u);

    // as long as one is registered, it holds the connection
    EXPECT_EQ(virConnectDomainEventDeregisterAny(conn.get(), second), 0);
    domain.reset();
    conn.reset();
    EXPECT_TRUE(host->until([&] { return kept.frees == 1; }));
    EXPECT_EQ(deregistered.frees, 1);
}

TEST_F(LibvirtClient, LifecycleOfTheTestDriver)
{
    live_and_die("test:///default");
}

TEST_F(LibvirtClient, LifecycleOverTheWire)
{
    Libvirtd daemon;
    live_and_die(remote_uri("test", "/default", daemon.socket_path()));
}

// --- the end of a connection --------------------------------------------------------

struct Closed : Counted {
    int calls = 0;
    int reason = -1;

    static void on_close(virConnectPtr, int why, void *opaque)
    {
        host->change([&] {
            auto *self = static_cast<Closed *>(opaque);
            self->calls++;
            self->reason = why;
        });
    }
};

TEST_F(LibvirtClient, KeepaliveFlowsAndFindsAStoppedDaemon)
{
    Libvirtd daemon;
    TempDir dir;
    RpcTap tap(dir / "tap", daemon.socket_path(), [] { host->change([] {}); });
    Closed closed;
    auto conn = connect(remote_uri("test", "/default", dir / "tap"));
    ASSERT_TRUE(conn);
    ASSERT_EQ(virConnectRegisterCloseCallback(conn.get(), Closed::on_close, &closed, Counted::free), 0);
    ASSERT_EQ(virConnectSetKeepAlive(conn.get(), 1, 1), 0) << virGetLastErrorMessage();

    EXPECT_TRUE(host->until([&] { return tap.pongs() >= 2; }));
    EXPECT_GE(tap.pings(), 2);
    EXPECT_EQ(virConnectIsAlive(conn.get()), 1);
    EXPECT_EQ(closed.calls, 0);

    daemon.stop();
    EXPECT_TRUE(host->until([&] { return closed.calls > 0; }));
    EXPECT_EQ(closed.reason, VIR_CONNECT_CLOSE_REASON_KEEPALIVE);
    EXPECT_EQ(virConnectIsAlive(conn.get()), 0);
    conn.reset();
    EXPECT_TRUE(host->until([&] { return closed.frees == 1; }));
    EXPECT_EQ(closed.calls, 1);
}

TEST_F(LibvirtClient, CloseCallbackWhenTheDaemonDies)
{
    Libvirtd daemon;
    Closed closed, never;
    auto conn = connect(remote_uri("test", "/default", daemon.socket_path()));
    auto other = connect(remote_uri("test", "/default", daemon.socket_path()));
    ASSERT_TRUE(conn && other);
    ASSERT_EQ(virConnectRegisterCloseCallback(other.get(), Closed::on_close, &never, Counted::free), 0);
    ASSERT_EQ(virConnectRegisterCloseCallback(conn.get(), Closed::on_close, &closed, Counted::free), 0);
    ASSERT_EQ(virConnectUnregisterCloseCallback(other.get(), Closed::on_close), 0);
    EXPECT_TRUE(host->until([&] { return never.frees == 1; }));

    daemon.kill();
    EXPECT_TRUE(host->until([&] { return closed.calls > 0; }));
    EXPECT_EQ(closed.reason, VIR_CONNECT_CLOSE_REASON_EOF);
    EXPECT_EQ(virConnectIsAlive(conn.get()), 0);
    conn.reset();
    other.reset();
    EXPECT_TRUE(host->until([&] { return closed.frees == 1; }));
    EXPECT_EQ(closed.calls, 1);
    EXPECT_EQ(never.calls, 0);
    EXPECT_EQ(never.frees, 1);
}

// --- streams ----------------------------------------------------------------------

// One volume moved by a non-blocking stream, all of it inside the stream's callback.
struct Transfer : Counted {
    std::string bytes;
    size_t sent = 0;
    int wakeups = 0;
    bool done = false;
    bool failed = false;

    void end(virStreamPtr stream, bool good)
    {
        virStreamEventRemoveCallback(stream);
        good = good && virStreamFinish(stream) == 0;
        host->change([&] {
            done = true;
            failed = !good;
        });
    }
    static void on_download(virStreamPtr stream, int, void *opaque)
    {
        auto *self = static_cast<Transfer *>(opaque);
        self->wakeups++;
        char block[65536];
        int got;
        while ((got = virStreamRecv(stream, block, sizeof block)) > 0)
            self->bytes.append(block, static_cast<size_t>(got));
        if (got != -2)
            self->end(stream, got == 0);
    }
    static void on_upload(virStreamPtr stream, int, void *opaque)
    {
        auto *self = static_cast<Transfer *>(opaque);
        self->wakeups++;
        while (self->sent < self->bytes.size()) {
            const size_t count = std::min<size_t>(65536, self->bytes.size() - self->sent);
            const int now = virStreamSend(stream, self->bytes.data() + self->sent, count);
            if (now == -2)
                return;
            if (now < 0)
                return self->end(stream, false);
            self->sent += static_cast<size_t>(now);
        }
        self->end(stream, true);
    }
};

std::string pattern(size_t count)
{
    std::string bytes(count, '\0');
    Pattern(7).fill(0, std::as_writable_bytes(std::span(bytes)));
    return bytes;
}

TEST_F(LibvirtClient, StreamsOfAVolume)
{
    constexpr size_t size = 5 * 1024 * 1024 + 12'345; // no multiple of any block
    Libvirtd daemon;
    auto conn = connect(remote_uri("storage", "/session", daemon.socket_path()));
    ASSERT_TRUE(conn);
    const std::string pool_xml =
        "<pool type='dir'><name>p</name><target><path>" + daemon.pool_path() + "</path></target></pool>";
    const std::string volume_xml =
        "<volume><name>v</name><capacity unit='bytes'>" + std::to_string(size) + "</capacity></volume>";
    Owned<virStoragePoolPtr> pool(virStoragePoolCreateXML(conn.get(), pool_xml.c_str(), 0));
    ASSERT_TRUE(pool) << virGetLastErrorMessage();
    Owned<virStorageVolPtr> volume(virStorageVolCreateXML(pool.get(), volume_xml.c_str(), 0));
    ASSERT_TRUE(volume) << virGetLastErrorMessage();

    Transfer up;
    up.bytes = pattern(size);
    Owned<virStreamPtr> stream(virStreamNew(conn.get(), VIR_STREAM_NONBLOCK));
    ASSERT_EQ(virStorageVolUpload(volume.get(), stream.get(), 0, size, 0), 0) << virGetLastErrorMessage();
    ASSERT_EQ(virStreamEventAddCallback(stream.get(), VIR_STREAM_EVENT_WRITABLE, Transfer::on_upload, &up, up.free), 0);
    EXPECT_TRUE(host->until([&] { return up.done; }));
    EXPECT_FALSE(up.failed) << virGetLastErrorMessage();
    EXPECT_TRUE(file_text(daemon.pool_path() + "/v") == up.bytes);

    Transfer down;
    stream.reset(virStreamNew(conn.get(), VIR_STREAM_NONBLOCK));
    ASSERT_EQ(virStorageVolDownload(volume.get(), stream.get(), 0, 0, 0), 0) << virGetLastErrorMessage();
    ASSERT_EQ(
        virStreamEventAddCallback(stream.get(), VIR_STREAM_EVENT_READABLE, Transfer::on_download, &down, down.free), 0);
    EXPECT_TRUE(host->until([&] { return down.done; }));
    EXPECT_FALSE(down.failed) << virGetLastErrorMessage();
    EXPECT_EQ(down.bytes.size(), size);
    EXPECT_TRUE(down.bytes == up.bytes);
    EXPECT_GT(down.wakeups, 1);

    stream.reset();
    volume.reset();
    pool.reset();
    conn.reset();
    // the remote driver of libvirt 9.0 forgets a stream's free function, on its own
    // event loop as well; never twice is what can be asked for
    EXPECT_TRUE(host->until_idle());
    EXPECT_LE(up.frees, 1);
    EXPECT_LE(down.frees, 1);
}

} // namespace
} // namespace sluice::test

int main(int argc, char **argv)
{
    testing::InitGoogleTest(&argc, argv);
    signal(SIGPIPE, SIG_IGN);
    if (sluice::test::Libvirtd::program().empty()) {
        fprintf(stderr, "libvirtd is not installed\n");
        return getenv("CI") ? 1 : 77;
    }
    sluice::test::EventHost host(argc > 1 && std::string_view(argv[1]) == "--thread");
    sluice::test::host = &host;
    // errors are looked at where they come up
    virSetErrorFunc(nullptr, [](void *, virErrorPtr) {});
    return RUN_ALL_TESTS();
}
