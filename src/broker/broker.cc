#include "broker/broker.h"

#include <sys/socket.h>

#include <csignal>
#include <thread>

#include "broker/bind.h"
#include "broker/calls.h"
#include "broker/names.h"

namespace belljar::broker {
namespace {

Result<Fd> listen_on_loopback(std::uint16_t port) {
  Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const Endpoint here{IpAddress::v4(127, 0, 0, 1), port};
  int err = socket ? bind_anywhere(socket.get(), here) : errno;
  if (err == 0 && ::listen(socket.get(), SOMAXCONN) < 0) err = errno;
  if (err != 0)
    return fail("publish: listen on " + here.text(), err,
                "choose another port: --publish=HOSTPORT:PORT");
  return socket;
}

}  // namespace

struct Broker::Inside {
  Inside(const Rules& the_rules, Doors doors, OnEvent on_event)
      : rules(the_rules),
        judge(rules),
        events(std::move(on_event)),
        sockets(loop, std::move(doors.sockets)),
        streams(loop, judge, events, sockets, allowance),
        datagrams(loop, judge, events, sockets, allowance),
        names(loop, judge, events, allowance, std::move(doors.dns_udp), std::move(doors.dns_tcp)) {
    serve(std::move(doors.notifications));
  }

  void serve(Fd notifications) {
    begin(loop, Calls::serve(std::make_shared<Calls>(loop, judge, events, streams, datagrams,
                                                     closer, std::move(notifications))));
  }

  Async<void> publish(Stream listener, std::uint16_t port) {
    while (co_await readable(listener)) {
      Fd client(
          ::accept4(listener.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (client) begin(loop, streams.serve_published(std::move(client), port));
    }
  }

  Rules rules;
  Judge judge;
  Events events;
  Closer closer;
  Allowance allowance;
  // Below what its coroutines use: they end with it.
  Loop loop{1};
  Sockets sockets;
  Streams streams;
  Datagrams datagrams;
  Names names;
  std::thread thread;
};

Broker::Broker(std::unique_ptr<Inside> inside) : inside_(std::move(inside)) {}

Broker::~Broker() { stop(); }

Result<std::unique_ptr<Broker>> Broker::start(const Policy& policy, const Rules& rules, Doors doors,
                                              OnEvent on_event) {
  auto inside = std::make_unique<Inside>(rules, std::move(doors), std::move(on_event));
  Inside& in = *inside;
  for (const Published& publish : policy.publish) {
    Fd listener = TRY(listen_on_loopback(publish.host_port));
    begin(in.loop, in.publish(Stream(in.loop, listener.release()), publish.port));
  }
  begin(in.loop, in.names.serve_udp());
  begin(in.loop, in.names.serve_tcp());
  in.thread = std::thread([&in] { in.loop.run(); });  // with all signals blocked, as now
  return std::unique_ptr<Broker>(new Broker(std::move(inside)));
}

void Broker::serve_also(Fd notifications) {
  asio::post(inside_->loop, [&in = *inside_, fd = std::move(notifications)]() mutable {
    in.serve(std::move(fd));
  });
}

void Broker::stop() {
  if (!inside_->thread.joinable()) return;
  Inside& in = *inside_;
  asio::co_spawn(in.loop, in.streams.finish(),
                 [&in](const std::exception_ptr&) { in.loop.stop(); });
  in.thread.join();
}

std::vector<NetworkEvent> Broker::events() const { return inside_->events.all(); }
std::uint64_t Broker::dropped_events() const { return inside_->events.dropped(); }

}  // namespace belljar::broker
