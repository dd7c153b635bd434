// SPDX-License-Identifier: LGPL-2.1-or-later

// A lane that copies through a ring.

#include <algorithm>
#include <cerrno>
#include <new>

#include "remote/relay/descriptors.hpp"
#include "remote/relay/lane.hpp"
#include "remote/relay/lane_limits.hpp"

namespace sluice::relay {

bool Lane::step_copying()
{
    bool moved = fill_ring();
    moved |= empty_ring();
    change_mode();
    return moved;
}

bool Lane::fill_ring()
{
    if (state_ != State::flowing || !source_ready_ || !has_room())
        return false;
    size_t limit = allowed(weight_ < weight_max ? copy_max : dear_ ? copy_max_dear : copy_max_bulk);
    if (limit == 0 || !take_ring())
        return false;
    Ring::Pieces space = ring_->space(limit);
    ++calls_;
    ssize_t n = read(space);
    if (!took(n))
        return false;
    auto bytes = static_cast<size_t>(n);
    ring_->produced(bytes);
    weigh(bytes >= large_read || bytes == space.bytes);
    // a short read has emptied a pipe or a socket: the next one would be in vain
    if (bytes < space.bytes && source_.kind() != Endpoint::Kind::other && !descriptors_)
        source_ready_ = false;
    return true;
}

bool Lane::empty_ring()
{
    if (!owes() || !sink_ready_)
        return false;
    if (preface_ && (!ring_ || ring_->empty() || descriptors_))
        return give_preface({});
    Ring::Pieces filled = ring_->filled(held_max_);
    if (preface_)
        return give_preface(filled);
    ++calls_;
    ssize_t n = write(filled);
    if (!gave(n))
        return false;
    delivered(static_cast<size_t>(n), filled.bytes);
    return true;
}

// Together with what there is after it, so that it need not travel alone.
bool Lane::give_preface(const Ring::Pieces &filled)
{
    iovec parts[3] = {{preface_->data(), preface_->size()}, filled.parts[0], filled.parts[1]};
    ++calls_;
    ssize_t n = sink_.write(parts, 1 + (filled.bytes > 0 ? filled.count : 0));
    if (!gave(n))
        return false;
    auto bytes = static_cast<size_t>(n);
    if (bytes < preface_->size()) {
        preface_->erase(0, bytes);
        sink_ready_ = false;
        return true;
    }
    bytes -= preface_->size();
    preface_.reset();
    delivered(bytes, filled.bytes);
    return true;
}

// `bytes` of so many in the ring have reached the sink.
void Lane::delivered(size_t bytes, size_t of)
{
    bytes_ += bytes;
    if (of > 0)
        ring_->consumed(bytes);
    if (bytes < of && !descriptors_)
        sink_ready_ = false;
    finish_if_delivered();
}

// An empty ring to read into, or the one there is.
bool Lane::take_ring()
{
    if (ring_)
        return true;
    if (waiting())
        return false;
    try {
        ring_ = buffers_ ? buffers_->take() : std::make_unique<Ring>(held_max_);
    } catch (const std::bad_alloc &) {
        fail(ENOMEM, true);
        return false;
    }
    if (!ring_)
        buffers_->queue(*this);
    return static_cast<bool>(ring_);
}

ssize_t Lane::read(const Ring::Pieces &space)
{
    if (descriptors_)
        return descriptors_->read(source_.fd(), space);
    if (about_descriptors_ == Descriptors::ignore || source_.kind() != Endpoint::Kind::socket)
        return source_.read(space.parts, space.count);
    ssize_t n = read_without_descriptors(source_.fd(), space.parts, space.count, met_descriptors_);
    return met_descriptors_ ? -EBADMSG : n;
}

ssize_t Lane::write(const Ring::Pieces &filled)
{
    if (!descriptors_)
        return sink_.write(filled.parts, filled.count);
    ssize_t n = descriptors_->write(sink_.fd(), filled);
    met_descriptors_ |= n == -EBADMSG;
    return n;
}

} // namespace sluice::relay
