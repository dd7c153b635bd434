// SPDX-License-Identifier: LGPL-2.1-or-later

// GLib alone: a g_unix_fd_source for each handle, as libvirt and most GLib programs
// have it. GLib has no way to park such a source, so that off and on is destroying
// it and making another, which is what libvirt's own event code does.

#include "loop_bench.hpp"

#include <glib-unix.h>

namespace loop_bench {
namespace {

class GSourcePerFd final : public Contestant {
public:
    GSourcePerFd() : context_(g_main_context_new()), loop_(g_main_loop_new(context_, FALSE)) {}
    ~GSourcePerFd() override
    {
        g_main_loop_unref(loop_);
        g_main_context_unref(context_);
    }

    void watch(std::span<Slot> slots) override
    {
        loop_of_all_ = loop_;
        sources_.reserve(slots.size());
        for (Slot &slot : slots) {
            slots_.push_back(&slot);
            sources_.push_back(attach(&slot));
        }
    }
    void unwatch() override
    {
        for (GSource *source : sources_)
            detach(source);
        sources_.clear();
        slots_.clear();
        turn();
    }
    void run() override { g_main_loop_run(loop_); }
    void turn() override { g_main_context_iteration(context_, FALSE); }
    void toggle() override
    {
        for (size_t i = 0; i < sources_.size(); i++) {
            detach(sources_[i]);
            sources_[i] = attach(slots_[i]);
        }
    }

private:
    GSource *attach(Slot *slot)
    {
        GSource *source = g_unix_fd_source_new(slot->fd, G_IO_IN);
        g_source_set_callback(source, G_SOURCE_FUNC(on_event), slot, nullptr);
        g_source_attach(source, context_);
        return source;
    }
    static void detach(GSource *source)
    {
        g_source_destroy(source);
        g_source_unref(source);
    }
    static gboolean on_event(gint, GIOCondition, gpointer opaque)
    {
        if (pass_token(static_cast<Slot *>(opaque)))
            g_main_loop_quit(loop_of_all_);
        return G_SOURCE_CONTINUE;
    }

    static inline GMainLoop *loop_of_all_ = nullptr;
    GMainContext *context_;
    GMainLoop *loop_;
    std::vector<GSource *> sources_;
    std::vector<Slot *> slots_;
};

} // namespace

std::unique_ptr<Contestant> make_gsource_per_fd()
{
    return std::make_unique<GSourcePerFd>();
}

} // namespace loop_bench
