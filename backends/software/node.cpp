// SPDX-License-Identifier: BSD-3-Clause
#include "backends/software/node.hpp"

#include <sys/epoll.h>
#include <unistd.h>

#include <chrono>

#include "backends/software/endpoint.hpp"
#include "backends/software/listener.hpp"
#include "backends/support/guarded.hpp"
#include "core/log.hpp"

namespace viaduct::software {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t max_connections = 65536;

/// How many links without a connection a process keeps for the next one.
constexpr std::size_t max_idle_links = 16;

/// While the preferred links have traffic, the others are looked at after so many rounds.
constexpr unsigned rounds_between_looks = 16;

/// A frame that the program sends carries the acknowledgment, if it comes before so many rounds with arrivals.
constexpr unsigned max_rounds_owing = 16;

/// So many requests go at once, each by a system call, before one is held.
constexpr unsigned posted_alone = 2;

/// How soon a program that polls steadily comes back. One that did not, twice in `suspicious` times, may have been
/// waited for, so nothing is held for a while. (Once, it may have been interrupted.)
constexpr auto steady = 50us;
constexpr unsigned suspicious = 16;
constexpr auto distrust = 100ms;

/// How long a process waits at most for its peers to take the last messages.
constexpr auto linger = 1s;

/// How long a peer may take to notice the end of a connection if its number is needed.
constexpr auto closing_patience = 5s;

/// Adds a connection to a list unless it is already there. A connection that cannot be added would wait forever, so it
/// breaks.
void enlist(std::vector<std::weak_ptr<Connection>>& list, bool& is_listed,
            const std::shared_ptr<Connection>& connection) noexcept {
    if (std::exchange(is_listed, true)) return;
    try {
        if (list.size() == list.capacity()) std::erase_if(list, [](const auto& entry) { return entry.expired(); });
        list.push_back(connection);
    } catch (const std::bad_alloc&) {
        is_listed = false;
        connection->lose("needs more memory than there is");
    }
}

}  // namespace

Result<std::shared_ptr<Node>> Nodes::open(const HostAddress& host,
                                          const std::function<Result<std::unique_ptr<Transport>>()>& create) {
    const LockGuard lock(mutex_);
    std::erase_if(nodes_, [](const auto& node) { return node.expired(); });
    for (const auto& node : nodes_)
        if (auto found = node.lock(); found != nullptr && found->host() == host) return found;
    auto transport = create();
    if (!transport.ok()) return transport.status();
    auto node = Node::create(host, std::move(*transport));
    if (node.ok()) nodes_.push_back(node.value());
    return node;
}

Result<std::shared_ptr<Node>> Node::create(const HostAddress& host, std::unique_ptr<Transport> transport) {
    std::shared_ptr<Node> node(new Node(host, std::move(transport)));
    node->links_fd_ = UniqueFd(epoll_create1(EPOLL_CLOEXEC));
    if (!node->links_fd_) return Status::from_errno(errno, "epoll_create1");
    auto agent = Agent::start(*node);
    if (!agent.ok()) return agent.status();
    const Guard guard(*node);
    node->agent_ = std::move(*agent);
    return node;
}

Node::Node(const HostAddress& host, std::unique_ptr<Transport> transport)
    : host_(host), transport_(std::move(transport)), flusher_([this](std::uint32_t number) {
          const Guard guard(*this);
          if (const auto connection = find(number)) connection->resume();
      }) {}

Node::~Node() {
    if (agent_ == nullptr) return;
    const Deadline end = Deadline::after(linger);
    {
        const Guard guard(*this);
        for (const auto& [id, link] : links_) link->say_goodbye();
    }
    while (!end.passed()) {
        {
            const Guard guard(*this);
            if (has_finished()) break;
            progress();
            acknowledge();
        }
        usleep(1000);
    }
    agent_->stop();
    const LockGuard lock(mutex_);
    ports_.clear();
    closing_.clear();
    links_.clear();
}

// ---- Progress ----------------------------------------------------------------------------------------------------

bool Node::may_hold(Link& link) noexcept {
    if (++posted_ <= posted_alone || !agent_->stands_back()) return false;
    if (holding_.empty()) {
        if (!distrusts_until_.passed()) return false;
        held_until_ = Deadline::after(steady);
    }
    if (std::ranges::find(holding_, &link) == holding_.end()) holding_.push_back(&link);
    return true;
}

void Node::send_held() noexcept {
    if (holding_.empty()) return;
    if (held_until_.passed()) {
        if (std::exchange(suspicion_, suspicious) != 0) distrusts_until_ = Deadline::after(distrust);
    } else if (suspicion_ != 0) {
        --suspicion_;
    }
    for (std::size_t count = holding_.size(); count != 0 && !holding_.empty(); --count) {
        Link* const link = holding_.back();
        holding_.pop_back();
        link->flush();
    }
}

bool Node::progress() noexcept {
    posted_ = 0;
    served_ = 0;
    send_held();
    bool arrived = false;
    std::size_t looked_at = 0;
    for (std::size_t i = 0; i < preferred_.size(); ++i)
        if (Link* const link = preferred_[i]) {
            ++looked_at;
            arrived = link->work() || arrived;
        }
    if (links_.size() > looked_at && (!arrived || ++rounds_ % rounds_between_looks == 0))
        arrived = work_on_ready_links() || arrived;
    if (owing_.empty()) return arrived;
    if (!arrived || ++rounds_owing_ >= max_rounds_owing) acknowledge();
    return arrived;
}

void Node::poll_as_consumer() noexcept {
    constexpr std::size_t one_more = 4096;
    const std::size_t before = moved_;
    progress();
    polls_ += static_cast<std::uint32_t>(1 + (moved_ - before) / one_more);
}

void Node::took_as_consumer(std::size_t completions) noexcept {
    constexpr std::size_t most_counted = 8;  // it may check its memory afterwards instead of polling
    const std::uint32_t before = polls_;
    polls_ += static_cast<std::uint32_t>(std::min(completions, most_counted));
    if (before / polls_between_looks != polls_ / polls_between_looks) progress();
}

/// Asks the system which links have something.
bool Node::work_on_ready_links() noexcept {
    std::array<epoll_event, 16> events;
    const int count = epoll_wait(links_fd_.get(), events.data(), static_cast<int>(events.size()), 0);
    bool arrived = false;
    bool has_shaken_hands = false;  // one link at a time does, so that strangers hold up nobody for long
    for (int i = 0; i < count; ++i) {
        const std::uint64_t id = events[static_cast<std::size_t>(i)].data.u64;  // a copy, because events are packed
        const auto found = links_.find(id);
        if (found == links_.end()) continue;  // closed since
        const auto link = found->second;
        if (!link->is_usable() && std::exchange(has_shaken_hands, true)) continue;
        const bool has_frames = link->work();
        arrived = arrived || has_frames;
        if (has_frames && link->is_open()) prefer(*link);
    }
    return arrived || count > 0;
}

void Node::acknowledge() noexcept {
    rounds_owing_ = 0;
    for (const auto& owing : std::exchange(owing_, {}))
        if (const auto connection = owing.lock()) {
            connection->is_owing = false;
            connection->acknowledge();
        }
}

void Node::wait_for_consumer(const std::shared_ptr<Connection>& connection) noexcept {
    enlist(waiting_, connection->is_waiting, connection);
}

void Node::owes(const std::shared_ptr<Connection>& connection) noexcept {
    enlist(owing_, connection->is_owing, connection);
    if (agent_ != nullptr) agent_->shorten_sleep();
}

void Node::resume_waiting() noexcept {
    if (waiting_.empty()) return;
    for (const auto& waiting : std::exchange(waiting_, {}))
        if (const auto connection = waiting.lock()) {
            connection->is_waiting = false;
            connection->resume();
        }
}

// ---- Links -------------------------------------------------------------------------------------------------------

Status Node::add(const std::shared_ptr<Link>& link) {
    link->id = link->last_use_id = next_id();
    holding_.reserve(links_.size() + 1);
    links_.emplace(link->id, link);
    epoll_event event{.events = EPOLLIN | EPOLLRDHUP, .data = {.u64 = link->id}};
    if (epoll_ctl(links_fd_.get(), EPOLL_CTL_ADD, link->fd(), &event) == 0) return {};
    const Status status = Status::from_errno(errno, "epoll_ctl");
    links_.erase(link->id);
    return status;
}

void Node::watch(Link& link, bool until_writable) noexcept {
    epoll_event event{.events = EPOLLIN | EPOLLRDHUP, .data = {.u64 = link.id}};
    if (until_writable) event.events |= EPOLLOUT;
    epoll_ctl(links_fd_.get(), EPOLL_CTL_MOD, link.fd(), &event);
}

void Node::forget(Link& link) noexcept {
    for (Link*& preferred : preferred_)
        if (preferred == &link) preferred = nullptr;
    std::erase(holding_, &link);
    epoll_ctl(links_fd_.get(), EPOLL_CTL_DEL, link.fd(), nullptr);
    links_.erase(link.id);
}

void Node::link_lost(Link& link, const Status& why) noexcept {
    for (std::size_t number = 0; number < connections_.size(); ++number)
        if (const auto connection = find(static_cast<std::uint32_t>(number), link)) connection->link_lost(why);
}

Result<std::shared_ptr<Link>> Node::link_to(const HostAddress& host, std::uint16_t port, bool fresh, bool& is_new) {
    is_new = false;
    std::shared_ptr<Link> newest;  // an older one may lead to a process that has closed the port since
    for (const auto& [id, link] : links_)
        if (!fresh && link->leads_to(host, port) && (newest == nullptr || newest->id < id)) newest = link;
    if (newest != nullptr) return newest;
    is_new = true;
    close_idle_links(Link::Side::Connects, max_idle_links);
    auto link = transport_->connect(*this, host, port);
    if (link.status().code() != Code::NoResources) return link;
    close_idle_links(Link::Side::Connects, 0);
    return transport_->connect(*this, host, port);
}

void Node::close_idle_links(Link::Side side, std::size_t most) noexcept {
    if (links_.size() <= most) return;
    (void)support::guarded([&]() -> Status {
        std::vector<std::shared_ptr<Link>> idle;
        for (const auto& [id, link] : links_)
            if (link->side() == side && link->is_idle()) idle.push_back(link);
        if (idle.size() <= most) return {};
        const auto kept = idle.end() - static_cast<std::ptrdiff_t>(most);
        std::ranges::nth_element(idle, kept, {}, [](const auto& link) { return link->last_use_id; });
        for (const auto& link : std::ranges::subrange(idle.begin(), kept)) {
            link->close();
            if (most == 0 || side == Link::Side::Accepts) link->abandon();
        }
        return {};
    });
}

/// On ports that are open to the network, strangers could cause any number of warnings, so there is one a second.
void Node::turn_away(std::uint16_t port, const Status& why) noexcept {
    const bool warns = next_warning_.passed();
    if (warns) next_warning_ = Deadline::after(std::chrono::seconds(1));
    log(warns ? LogLevel::Warning : LogLevel::Info, "%s: port %u: a client was turned away: %s", transport_->name(),
        port, why.where());
}

// ---- Connections -------------------------------------------------------------------------------------------------

Result<std::uint32_t> Node::add(const std::shared_ptr<Connection>& connection) {
    if (free_numbers_.empty()) {
        if (connections_.size() >= max_connections) {
            lacks_numbers_ = true;
            agent_->shorten_sleep();
            return Status(Code::NoResources, "too many connections");
        }
        free_numbers_.reserve(connections_.size() + 1);  // remove() does not allocate
        connections_.push_back(nullptr);
        free_numbers_.push_back(static_cast<std::uint32_t>(connections_.size() - 1));
    }
    const std::uint32_t number = free_numbers_.back();
    free_numbers_.pop_back();
    connections_[number] = connection.get();
    return number;
}

void Node::end_connections() noexcept {
    while (!ending_.empty()) {
        Endpoint* endpoint = ending_.back();
        ending_.pop_back();
        endpoint->end();
    }
}

bool Node::keep_closing(const std::shared_ptr<Connection>& connection) noexcept {
    return support::guarded([&] {
               closing_.push_back({.connection = connection, .patience = Deadline::after(closing_patience)});
               connection->closing = std::prev(closing_.end());
           })
        .ok();
}

void Node::forget_closing(Connection& connection) noexcept {
    if (const auto place = std::exchange(connection.closing, std::nullopt)) closing_.erase(*place);
}

void Node::give_up_closing() noexcept {
    if (!std::exchange(lacks_numbers_, false) || closing_.empty() || !closing_.front().patience.passed()) return;
    constexpr const char* why = "the peer has not noticed the ends of connections, whose numbers have run out";
    const auto connection = closing_.front().connection;
    const auto link = std::static_pointer_cast<Link>(connection->link()->shared_from_this());
    log(LogLevel::Warning, "%s: %s", transport_->name(), why);
    link->give_up({Code::Unreachable, why});
}

}  // namespace viaduct::software
