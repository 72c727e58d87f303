#include "traffic.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "samples.h"

namespace bench {
namespace {

constexpr std::size_t kChunk = 256 << 10;
constexpr std::size_t kRecordHead = 5;  // of TLS; the last two bytes are the length

[[noreturn]] void die(const char* what) {
  std::perror(what);
  std::_Exit(2);
}

std::uint16_t port_of(Deed deed, Dress dress) {
  const int behaviour = deed == Deed::down ? 1 : deed == Deed::up ? 2 : 0;
  return static_cast<std::uint16_t>(kFirstPort + 10 * static_cast<int>(dress) + behaviour);
}

// ---- one end of a connection ----

struct FreeSsl {
  void operator()(SSL* ssl) const { SSL_free(ssl); }
};

// SSL_set_tlsext_host_name, which is a macro with a cast.
void ask_for_the_server(SSL* ssl) {
  std::string name = kServerName;
  SSL_ctrl(ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, name.data());
}

class Wire {
 public:
  explicit Wire(int fd) : fd_(fd) {
    const int on = 1;
    ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  Wire(Wire&& other) noexcept : fd_(std::exchange(other.fd_, -1)), ssl_(std::move(other.ssl_)) {}
  Wire& operator=(Wire&&) = delete;
  ~Wire() {
    if (fd_ >= 0) ::close(fd_);
  }

  int fd() const { return fd_; }

  bool encrypt(SSL_CTX* context, bool as_client) {
    ssl_.reset(SSL_new(context));
    SSL_set_fd(ssl_.get(), fd_);
    if (!as_client) return SSL_accept(ssl_.get()) == 1;
    ask_for_the_server(ssl_.get());
    return SSL_connect(ssl_.get()) == 1;
  }

  // 0 or less: it has ended.
  ssize_t read(void* into, std::size_t size) {
    if (ssl_) return SSL_read(ssl_.get(), into, static_cast<int>(size));
    return ::recv(fd_, into, size, 0);
  }
  bool write(const void* from, std::size_t size) {
    if (ssl_) return SSL_write(ssl_.get(), from, static_cast<int>(size)) > 0;
    const char* at = static_cast<const char*>(from);
    while (size > 0) {
      const ssize_t n = ::send(fd_, at, size, MSG_NOSIGNAL);
      if (n <= 0) return false;
      at += n;
      size -= static_cast<std::size_t>(n);
    }
    return true;
  }
  bool read_all(void* into, std::size_t size) {
    for (char* at = static_cast<char*>(into); size > 0;) {
      const ssize_t n = read(at, size);
      if (n <= 0) return false;
      at += n;
      size -= static_cast<std::size_t>(n);
    }
    return true;
  }

 private:
  int fd_;
  std::unique_ptr<SSL, FreeSsl> ssl_;
};

bool read_bytes(Wire& wire, std::uint64_t size) {
  std::vector<char> buffer(kChunk);
  while (size > 0) {
    const ssize_t n = wire.read(buffer.data(), std::min<std::uint64_t>(size, buffer.size()));
    if (n <= 0) return false;
    size -= static_cast<std::uint64_t>(n);
  }
  return true;
}

bool write_bytes(Wire& wire, std::uint64_t size) {
  const std::vector<char> buffer(kChunk, 'b');
  while (size > 0) {
    const std::size_t part = std::min<std::uint64_t>(size, buffer.size());
    if (!wire.write(buffer.data(), part)) return false;
    size -= part;
  }
  return true;
}

// ---- the server ----

// A key and a certificate, made on the spot: clients here do not ask who signed it.
SSL_CTX* server_context() {
  SSL_CTX* context = SSL_CTX_new(TLS_server_method());
  EVP_PKEY* key = EVP_EC_gen("P-256");
  X509* certificate = X509_new();
  X509_set_version(certificate, 2);
  X509_gmtime_adj(X509_getm_notBefore(certificate), 0);
  X509_gmtime_adj(X509_getm_notAfter(certificate), 24L * 60 * 60);
  X509_set_pubkey(certificate, key);
  X509_sign(certificate, key, EVP_sha256());
  if (SSL_CTX_use_certificate(context, certificate) != 1 ||
      SSL_CTX_use_PrivateKey(context, key) != 1)
    die("certificate");
  SSL_CTX_set_num_tickets(context, 0);
  return context;
}

// One record.
bool skip_hello(Wire& wire) {
  unsigned char head[kRecordHead];
  return wire.read_all(head, sizeof head) && read_bytes(wire, head[3] * 256U + head[4]);
}

// With which a server chooses TLS 1.3: a relay that reads names then opens.
bool write_server_hello(Wire& wire) {
  constexpr unsigned char kRandom = 32, kExtensions = 8;
  constexpr unsigned char kBody = 2 + kRandom + 1 + 2 + 1 + kExtensions;
  const unsigned char begin[] = {22, 3, 3, 0, kBody + 4, 2, 0, 0, kBody, 3, 3};
  const unsigned char end[] = {0, 0x13, 0x01, 0, 0, 6, 0, 43, 0, 2, 3, 4};
  std::string hello(std::begin(begin), std::end(begin));
  hello.append(kRandom, 'r').append(std::begin(end), std::end(end));
  return wire.write(hello.data(), hello.size());
}

// Each connection begins with a number: the bytes that follow, or that are asked for.
void answer(Wire wire, Deed deed, Dress dress, SSL_CTX* context) {
  if (dress == Dress::tls && !wire.encrypt(context, false)) return;
  if (dress == Dress::hello && !(skip_hello(wire) && write_server_hello(wire))) return;
  std::uint64_t size = 0;
  char byte = 0;
  switch (deed) {
    case Deed::down:
      if (wire.read_all(&size, sizeof size) && write_bytes(wire, size)) (void)wire.read(&byte, 1);
      return;
    case Deed::up:
      if (wire.read_all(&size, sizeof size) && read_bytes(wire, size)) wire.write(&byte, 1);
      return;
    default:
      while (wire.read(&byte, 1) == 1) wire.write(&byte, 1);
  }
}

void listen_for(Deed deed, Dress dress, SSL_CTX* context) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port_of(deed, dress));
  if (::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) < 0) die("bind");
  if (::listen(fd, 4096) < 0) die("listen");
  std::thread([=] {
    for (;;) {
      const int client = ::accept4(fd, nullptr, nullptr, SOCK_CLOEXEC);
      if (client >= 0) std::thread(answer, Wire(client), deed, dress, context).detach();
    }
  }).detach();
}

// ---- the client ----

struct Address {
  sockaddr_in in{};
};

Address look_up(const std::string& host, std::uint16_t port) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  if (::getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0) die("getaddrinfo");
  Address address;
  std::memcpy(&address.in, found->ai_addr, sizeof address.in);
  ::freeaddrinfo(found);
  address.in.sin_port = htons(port);
  return address;
}

std::string base64(const std::string& text) {
  std::string out(4 * (text.size() / 3 + 1) + 1, '\0');
  const int n = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                                reinterpret_cast<const unsigned char*>(text.data()),
                                static_cast<int>(text.size()));
  out.resize(static_cast<std::size_t>(n));
  return out;
}

// A proxy as HTTPS_PROXY has it: http://[USER:PASSWORD@]HOST:PORT[/]
struct Proxy {
  Address address;
  std::string credentials;

  static Proxy from_environment() {
    const char* value = std::getenv("HTTPS_PROXY");
    if (value == nullptr) value = std::getenv("https_proxy");
    std::string url = value == nullptr ? "" : value;
    if (!url.starts_with("http://")) die("HTTPS_PROXY");
    url.erase(0, 7);
    Proxy proxy;
    if (const std::size_t at = url.rfind('@'); at != url.npos) {
      proxy.credentials = url.substr(0, at);
      url.erase(0, at + 1);
    }
    const std::size_t colon = url.rfind(':');
    proxy.address = look_up(url.substr(0, colon),
                            static_cast<std::uint16_t>(std::atoi(url.c_str() + colon + 1)));
    return proxy;
  }

  bool lead(Wire& wire, const std::string& host, std::uint16_t port) const {
    const std::string to = host + ":" + std::to_string(port);
    std::string request = "CONNECT " + to + " HTTP/1.1\r\nHost: " + to + "\r\n";
    if (!credentials.empty())
      request += "Proxy-Authorization: Basic " + base64(credentials) + "\r\n";
    request += "\r\n";
    if (!wire.write(request.data(), request.size())) return false;
    std::string reply;
    for (char byte; !reply.ends_with("\r\n\r\n"); reply += byte)
      if (wire.read(&byte, 1) != 1) return false;
    return reply.starts_with("HTTP/1.1 200") || reply.starts_with("HTTP/1.0 200");
  }
};

// The first flight of a TLS client that wants kServerName.
std::string client_hello(SSL_CTX* context) {
  const std::unique_ptr<SSL, FreeSsl> ssl(SSL_new(context));
  ask_for_the_server(ssl.get());
  SSL_set_bio(ssl.get(), BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
  SSL_connect(ssl.get());  // writes its hello and wants an answer
  char* data = nullptr;
  const long size = BIO_get_mem_data(SSL_get_wbio(ssl.get()), &data);
  return {data, static_cast<std::size_t>(size)};
}

class Client {
 public:
  explicit Client(const Visit& visit)
      : visit_(visit),
        port_(port_of(visit.deed, visit.dress)),
        context_(SSL_CTX_new(TLS_client_method())) {
    hello_ = client_hello(context_);
    if (visit.by_proxy) proxy_ = Proxy::from_environment();
    target_ = proxy_ ? proxy_->address : look_up(visit.host, port_);
  }

  // Only until connect() has come back, or the proxy has answered.
  std::optional<Wire> connect() const {
    Wire wire(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::connect(wire.fd(), reinterpret_cast<const sockaddr*>(&target_.in), sizeof target_.in) < 0)
      die("connect");
    if (proxy_ && !proxy_->lead(wire, visit_.host, port_)) return std::nullopt;
    return wire;
  }

  bool dress(Wire& wire) const {
    if (visit_.dress == Dress::tls) return wire.encrypt(context_, true);
    if (visit_.dress == Dress::plain) return true;
    return wire.write(hello_.data(), hello_.size()) && skip_hello(wire);
  }

 private:
  Visit visit_;
  std::uint16_t port_;
  SSL_CTX* context_;
  std::string hello_;
  std::optional<Proxy> proxy_;
  Address target_;
};

bool echo(Wire& wire) {
  char byte = 'b';
  return wire.write(&byte, 1) && wire.read(&byte, 1) == 1;
}

// Until the other side has seen it: what an end costs is not the next connect's.
void end(Wire& wire) {
  char byte = 0;
  ::shutdown(wire.fd(), SHUT_WR);
  while (::recv(wire.fd(), &byte, 1, 0) > 0) {
  }
}

bool connect_often(const Client& client, std::uint64_t count) {
  std::ofstream took("took");
  constexpr std::uint64_t kWarm = 20;
  for (std::uint64_t i = 0; i < count + kWarm; ++i) {
    const Nanoseconds began = now();
    std::optional<Wire> wire = client.connect();
    const Nanoseconds connected = now();
    if (!wire || !client.dress(*wire) || !echo(*wire)) return false;
    if (i >= kWarm) took << connected - began << ' ' << now() - began << '\n';
    end(*wire);
  }
  return true;
}

bool transfer(const Client& client, Deed deed, std::uint64_t size) {
  std::optional<Wire> wire = client.connect();
  if (!wire || !client.dress(*wire)) return false;
  const Nanoseconds began = now();
  char byte = 0;
  if (!wire->write(&size, sizeof size)) return false;
  const bool done = deed == Deed::down ? read_bytes(*wire, size)
                                       : write_bytes(*wire, size) && wire->read(&byte, 1) == 1;
  if (!done) return false;
  std::ofstream("took") << now() - began << '\n';
  return true;
}

bool hold(const Client& client, std::uint64_t count) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  const Nanoseconds began = now();
  std::vector<Wire> wires;
  for (std::uint64_t i = 0; i < count; ++i) {
    std::optional<Wire> wire = client.connect();
    if (!wire) return false;
    wires.push_back(std::move(*wire));
  }
  for (Wire& wire : wires)
    if (!client.dress(wire) || !echo(wire)) return false;
  std::ofstream("took") << now() - began << std::endl;
  while (!std::filesystem::exists("let-go")) ::usleep(10'000);
  return true;
}

}  // namespace

std::vector<std::string> words_of(const Visit& visit) {
  return {"--visit",
          std::to_string(static_cast<int>(visit.deed)),
          std::to_string(static_cast<int>(visit.dress)),
          visit.host,
          visit.by_proxy ? "1" : "0",
          std::to_string(visit.count)};
}

Visit visit_of(const std::vector<std::string>& words) {
  return {.deed = static_cast<Deed>(std::atoi(words.at(0).c_str())),
          .dress = static_cast<Dress>(std::atoi(words.at(1).c_str())),
          .host = words.at(2),
          .by_proxy = words.at(3) == "1",
          .count = std::strtoull(words.at(4).c_str(), nullptr, 10)};
}

bool pay(const Visit& visit) {
  ::signal(SIGPIPE, SIG_IGN);
  const Client client(visit);
  switch (visit.deed) {
    case Deed::connect:
      return connect_often(client, visit.count);
    case Deed::hold:
      return hold(client, visit.count);
    default:
      return transfer(client, visit.deed, visit.count);
  }
}

void serve(const std::function<void()>& ready) {
  ::signal(SIGPIPE, SIG_IGN);
  SSL_CTX* context = server_context();
  for (Deed deed : {Deed::connect, Deed::down, Deed::up})
    for (Dress dress : {Dress::plain, Dress::hello, Dress::tls}) listen_for(deed, dress, context);
  ready();
  for (;;) ::pause();
}

}  // namespace bench
