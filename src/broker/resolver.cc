#include "broker/resolver.h"

#include <ares.h>
#include <sys/epoll.h>

#include <algorithm>
#include <memory>

namespace belljar::broker {
namespace {

// A guest's resolver waits 5 s before it asks again; by then it shall have an answer.
constexpr int kFirstWait = 1500;
constexpr int kTries = 2;
constexpr int kOptions =
    ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_SOCK_STATE_CB;

// One question to c-ares, whose sockets all stand in one epoll.
struct Question {
  Fd epoll{::epoll_create1(EPOLL_CLOEXEC)};
  ares_channel channel = nullptr;
  bool done = false;
  Resolved result;

  Question() = default;
  Question(const Question&) = delete;
  Question& operator=(const Question&) = delete;
  ~Question() {
    if (channel != nullptr) ares_destroy(channel);
  }
};

void watch(void* question, ares_socket_t socket, int read, int write) {
  const int epoll = static_cast<Question*>(question)->epoll.get();
  epoll_event event{};
  event.events = (read != 0 ? EPOLLIN : 0U) | (write != 0 ? EPOLLOUT : 0U);
  event.data.fd = socket;
  if (event.events == 0)
    ::epoll_ctl(epoll, EPOLL_CTL_DEL, socket, nullptr);
  else if (::epoll_ctl(epoll, EPOLL_CTL_ADD, socket, &event) < 0)
    ::epoll_ctl(epoll, EPOLL_CTL_MOD, socket, &event);
}

void take_answer(void* data, int status, int, ares_addrinfo* found) {
  auto& question = *static_cast<Question*>(data);
  question.done = true;
  const std::unique_ptr<ares_addrinfo, void (*)(ares_addrinfo*)> owned(found, ares_freeaddrinfo);
  Resolved& result = question.result;
  if (status == ARES_SUCCESS || status == ARES_ENODATA)
    result.kind = Resolved::Kind::found;
  else if (status == ARES_ENOTFOUND)
    result.kind = Resolved::Kind::no_such_name;
  if (status != ARES_SUCCESS || found == nullptr) return;
  result.ttl = 60;
  for (const ares_addrinfo_node* node = found->nodes; node != nullptr; node = node->ai_next) {
    sockaddr_storage storage{};
    std::copy_n(reinterpret_cast<const std::byte*>(node->ai_addr), node->ai_addrlen,
                reinterpret_cast<std::byte*>(&storage));
    const std::optional<Endpoint> endpoint = Endpoint::from(storage, node->ai_addrlen);
    if (endpoint) result.addresses.push_back(endpoint->address);
    if (node->ai_ttl > 0) result.ttl = static_cast<std::uint32_t>(node->ai_ttl);
  }
}

}  // namespace

Async<Resolved> Resolver::resolve(std::string name, int family) {
  auto question = std::make_unique<Question>();
  ares_options options{};
  options.flags = ARES_FLAG_NOSEARCH;
  options.timeout = kFirstWait;
  options.tries = kTries;
  options.sock_state_cb = watch;
  options.sock_state_cb_data = question.get();
  if (!question->epoll || ares_init_options(&question->channel, &options, kOptions) != ARES_SUCCESS)
    co_return Resolved{};
  ares_addrinfo_hints hints{};
  hints.ai_family = family;
  hints.ai_flags = ARES_AI_NOSORT;
  hints.ai_socktype = SOCK_STREAM;
  ares_getaddrinfo(question->channel, name.c_str(), nullptr, &hints, take_answer, question.get());

  // Shared: the timer's handler may run after this is over.
  auto ready = std::make_shared<Stream>(loop_, ::fcntl(question->epoll.get(), F_DUPFD_CLOEXEC, 3));
  while (!question->done) {
    timeval most{.tv_sec = 0, .tv_usec = 500'000};
    timeval wait{};
    ares_timeout(question->channel, &most, &wait);
    asio::steady_timer timer(
        loop_, std::chrono::seconds(wait.tv_sec) + std::chrono::microseconds(wait.tv_usec));
    timer.async_wait([ready](const boost::system::error_code& error) {
      if (!error) ready->cancel();
    });
    (void)co_await readable(*ready);
    timer.cancel();
    epoll_event events[8];
    const int count = ::epoll_wait(question->epoll.get(), events, 8, 0);
    for (int i = 0; i < count; ++i) {
      const bool in = (events[i].events & ~EPOLLOUT) != 0;
      const bool out = (events[i].events & EPOLLOUT) != 0;
      ares_process_fd(question->channel, in ? events[i].data.fd : ARES_SOCKET_BAD,
                      out ? events[i].data.fd : ARES_SOCKET_BAD);
    }
    if (count <= 0) ares_process_fd(question->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
  }
  co_return std::move(question->result);
}

}  // namespace belljar::broker
