/*
 * A server of event streams and a client that measures them, so that neither is slower than what is between them. Compiled by bench/streams.ts with "cc -O2".
 *
 *   streams serve PORT [ignored ...]
 *     Answers the probes of a slot, and POSTs. A body with "stream":true gets a stream of N events, N being the number behind "chunks": (default 200), one for each
 *     stream and turn, or one every P microseconds, P being the number behind "pace":. Each event contains the monotonic time at which it was written.
 *
 *   streams load PORT CONNECTIONS CHUNKS PACE SECONDS MODEL
 *     Asks for one stream after another on each connection, for so many seconds, and prints as JSON: streams that were complete, events, failures, milliseconds to the first event
 *     (p50, p99, largest) and milliseconds from the writing of an event to its reading (p50, p99, p99.9, largest).
 *
 *   streams rate PORT CONNECTIONS PER_SECOND SECONDS MODEL
 *     Sends short requests at a fixed rate, whether or not earlier ones were answered, and prints answers, failures, and milliseconds from when each was due to its answer, after
 *     the first half second.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MOST 4096
#define IN 65536
#define EVENTS 256

struct conn {
  int fd, used, need_write, out_len, out_at;
  int chunks, sent;            /* server: events of the present stream */
  int64_t pace, due, asked;    /* nanoseconds */
  int first, waits, digits;    /* client */
  int64_t stamp;
  int tail;                    /* client: how much of the end of an answer has been seen */
  char in[IN];
  int in_len;
  char out[IN];
};

static struct conn *all[MOST];
static int epfd, highest;

static int64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void die(const char *what) {
  perror(what);
  exit(1);
}

static void watch(struct conn *c, int write) {
  struct epoll_event e = {.events = EPOLLIN | (write ? EPOLLOUT : 0), .data.fd = c->fd};
  if (epoll_ctl(epfd, c->used ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, c->fd, &e) < 0) die("epoll_ctl");
  c->used = 1;
  c->need_write = write;
}

static struct conn *opened(int fd) {
  if (fd >= MOST) {
    close(fd);
    return NULL;
  }
  int one = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  fcntl(fd, F_SETFL, O_NONBLOCK);
  struct conn *c = calloc(1, sizeof *c);
  if (c == NULL) die("calloc");
  c->fd = fd;
  all[fd] = c;
  if (fd > highest) highest = fd;
  watch(c, 0);
  return c;
}

static void closed(struct conn *c) {
  close(c->fd);
  all[c->fd] = NULL;
  free(c);
}

/* Returns -1 if the connection is broken. */
static int flush_out(struct conn *c) {
  while (c->out_at < c->out_len) {
    ssize_t n = send(c->fd, c->out + c->out_at, c->out_len - c->out_at, MSG_NOSIGNAL);
    if (n < 0 && errno == EAGAIN) {
      if (!c->need_write) watch(c, 1);
      return 0;
    }
    if (n < 0) return -1;
    c->out_at += n;
  }
  c->out_at = c->out_len = 0;
  if (c->need_write) watch(c, 0);
  return 0;
}

static void put(struct conn *c, const char *text, int len) {
  if (c->out_len + len > IN) return;
  memcpy(c->out + c->out_len, text, len);
  c->out_len += len;
}

static void put_answer(struct conn *c, const char *json) {
  char head[512];
  int n = snprintf(head, sizeof head, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s", strlen(json), json);
  put(c, head, n);
}

static void put_event(struct conn *c) {
  char event[512], chunk[640];
  int n;
  if (c->sent == c->chunks - 1)
    n = snprintf(event, sizeof event, "data: {\"id\":\"c\",\"choices\":[],\"usage\":{\"prompt_tokens\":140,\"completion_tokens\":%d,\"total_tokens\":%d}}\n\ndata: [DONE]\n\n", c->chunks, 140 + c->chunks);
  else
    n = snprintf(event, sizeof event,
                 "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"T%019lld\"},\"finish_reason\":null}]}\n\n",
                 (long long)now_ns());
  int m = snprintf(chunk, sizeof chunk, "%x\r\n%.*s\r\n", n, n, event);
  put(c, chunk, m);
  c->sent += 1;
  if (c->sent == c->chunks) {
    put(c, "0\r\n\r\n", 5);
    c->chunks = 0;
  }
}

static long number_after(const char *text, const char *key, long otherwise) {
  const char *at = strstr(text, key);
  return at == NULL ? otherwise : atol(at + strlen(key));
}

/* Returns -1 if the connection is to be closed. */
static int serve_input(struct conn *c) {
  ssize_t n = recv(c->fd, c->in + c->in_len, IN - 1 - c->in_len, 0);
  if (n < 0 && errno == EAGAIN) return 0;
  if (n <= 0) return -1;
  c->in_len += n;
  c->in[c->in_len] = 0;
  char *end = strstr(c->in, "\r\n\r\n");
  if (end == NULL) return 0;
  char *length = strcasestr(c->in, "content-length:");
  int body = length != NULL && length < end ? atoi(length + 15) : 0;
  if (c->in_len < end + 4 - c->in + body) return 0;
  char *text = end + 4;
  if (strstr(text, "\"stream\":true") != NULL) {
    static const char head[] = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
    put(c, head, sizeof head - 1);
    c->chunks = number_after(text, "\"chunks\":", 200);
    c->pace = number_after(text, "\"pace\":", 0) * 1000;
    c->sent = 0;
    c->due = now_ns();
  } else if (strncmp(c->in, "GET /health", 11) == 0) put_answer(c, "{\"status\":\"ok\"}");
  else put_answer(c, "{\"choices\":[{\"index\":0,\"text\":\"a\",\"message\":{\"role\":\"assistant\",\"content\":\"yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\"},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":140,\"completion_tokens\":20,\"total_tokens\":160}}");
  c->in_len = 0;
  return flush_out(c);
}

static void serve(int port) {
  int one = 1, listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  if (bind(listener, (struct sockaddr *)&at, sizeof at) < 0 || listen(listener, 2048) < 0) die("listen");
  struct epoll_event e = {.events = EPOLLIN, .data.fd = listener}, seen[EVENTS];
  epoll_ctl(epfd, EPOLL_CTL_ADD, listener, &e);
  for (;;) {
    int64_t now = now_ns(), next = INT64_MAX;
    for (int fd = 0; fd <= highest; fd += 1) {
      struct conn *c = all[fd];
      if (c == NULL || c->chunks == 0 || c->out_len > 0) continue;
      if (c->due <= now) {
        put_event(c);
        c->due += c->pace;
        if (flush_out(c) < 0) {
          closed(c);
          continue;
        }
      }
      if (c->chunks > 0 && c->out_len == 0 && c->due < next) next = c->due;
    }
    now = now_ns();
    int wait = next == INT64_MAX ? 1000 : next <= now ? 0 : (int)((next - now + 999999) / 1000000);
    int n = epoll_wait(epfd, seen, EVENTS, wait);
    for (int i = 0; i < n; i += 1) {
      if (seen[i].data.fd == listener) {
        int fd;
        while ((fd = accept(listener, NULL, NULL)) >= 0) opened(fd);
        continue;
      }
      struct conn *c = all[seen[i].data.fd];
      if (c == NULL) continue;
      int broken = (seen[i].events & EPOLLOUT) != 0 && flush_out(c) < 0;
      if (!broken && (seen[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR))) broken = serve_input(c) < 0;
      if (broken) closed(c);
    }
  }
}

/* What was measured, in nanoseconds; the first that do not fit are kept, which is more than a run has. */
struct list {
  int64_t *values;
  size_t size, room;
};

static void add(struct list *l, int64_t value) {
  if (l->size == l->room) {
    l->room = l->room == 0 ? 65536 : l->room * 2;
    l->values = realloc(l->values, l->room * sizeof *l->values);
    if (l->values == NULL) die("realloc");
  }
  l->values[l->size++] = value;
}

static int compare(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return x < y ? -1 : x > y;
}

static void print_list(const char *name, struct list *l) {
  qsort(l->values, l->size, sizeof *l->values, compare);
  double shares[] = {0.5, 0.99, 0.999};
  printf(",\"%s\":[", name);
  for (int i = 0; i < 3; i += 1) printf("%.3f,", l->size == 0 ? 0 : l->values[(size_t)(shares[i] * (l->size - 1))] / 1e6);
  printf("%.3f]", l->size == 0 ? 0 : l->values[l->size - 1] / 1e6);
}

static struct conn *join(int port) {
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof at) < 0) die("connect");
  return opened(fd);
}

static struct list firsts, delays;
static long streams, events, failures;
static char request[4096];
static int request_len;

static void ask(struct conn *c) {
  put(c, request, request_len);
  c->asked = now_ns();
  c->first = c->tail = c->digits = 0;
  c->waits = 1;
  if (flush_out(c) < 0) failures += 1;
}

/* Reads what is there: times in events, and the end of the body. */
static void look(struct conn *c, const char *bytes, ssize_t n, int64_t now) {
  static const char end[] = "0\r\n\r\n";
  for (ssize_t i = 0; i < n; i += 1) {
    char b = bytes[i];
    if (c->digits > 0) {
      if (b >= '0' && b <= '9') {
        c->stamp = c->stamp * 10 + (b - '0');
        c->digits += 1;
        if (c->digits == 20) {
          add(&delays, now - c->stamp);
          events += 1;
          if (!c->first) add(&firsts, now - c->asked);
          c->first = 1;
          c->digits = 0;
        }
      } else c->digits = 0;
    } else if (b == 'T') {
      c->digits = 1;
      c->stamp = 0;
    }
    c->tail = b == end[c->tail] ? c->tail + 1 : b == '0' ? 1 : 0;
    if (c->tail == 5) {
      c->tail = 0;
      c->waits = 0;
      if (c->first) streams += 1;
      else failures += 1;
    }
  }
}

static void load(int port, int connections, double seconds) {
  for (int i = 0; i < connections; i += 1) ask(join(port));
  int64_t until = now_ns() + (int64_t)(seconds * 1e9);
  int open = connections;
  struct epoll_event seen[EVENTS];
  static char bytes[IN];
  while (open > 0 && now_ns() < until + 20000000000) {
    int n = epoll_wait(epfd, seen, EVENTS, 1000);
    for (int i = 0; i < n; i += 1) {
      struct conn *c = all[seen[i].data.fd];
      if (c == NULL) continue;
      ssize_t got = recv(c->fd, bytes, sizeof bytes, 0);
      if (got < 0 && errno == EAGAIN) continue;
      if (got <= 0) {
        failures += 1;
        open -= 1;
        closed(c);
        continue;
      }
      int64_t now = now_ns();
      look(c, bytes, got, now);
      if (c->waits) continue;
      if (now < until) ask(c);
      else {
        open -= 1;
        closed(c);
      }
    }
  }
  failures += open;
  printf("{\"streams\":%ld,\"events\":%ld,\"failures\":%ld", streams, events, failures);
  print_list("firstMs", &firsts);
  print_list("delayMs", &delays);
  printf("}\n");
}

/* Each request has a time at which it is due; one that finds no free connection waits, and its time counts from when it was due. */
static void rate(int port, int connections, double per_second, double seconds) {
  struct conn **free_ones = calloc(connections, sizeof *free_ones);
  int free_count = 0;
  for (int i = 0; i < connections; i += 1) free_ones[free_count++] = join(port);
  int64_t begin = now_ns(), every = (int64_t)(1e9 / per_second), total = (int64_t)(per_second * seconds), next = 0, done = 0;
  struct list times = {0};
  struct epoll_event seen[EVENTS];
  static char bytes[IN];
  while (done + failures < total && now_ns() < begin + (int64_t)(seconds * 1e9) + 10000000000) {
    int64_t now = now_ns();
    while (next < total && free_count > 0 && begin + next * every <= now) {
      struct conn *c = free_ones[--free_count];
      put(c, request, request_len);
      c->asked = begin + next * every;
      c->waits = 1;
      c->in_len = 0;
      if (flush_out(c) < 0) failures += 1;
      next += 1;
    }
    /* A wait of the kernel is longer than the time between two requests: it is only asked what is there. */
    int n = epoll_wait(epfd, seen, EVENTS, 0);
    now = now_ns();
    for (int i = 0; i < n; i += 1) {
      struct conn *c = all[seen[i].data.fd];
      ssize_t got = recv(c->fd, bytes, sizeof bytes, 0);
      if (got < 0 && errno == EAGAIN) continue;
      if (got <= 0) {
        fprintf(stderr, "a connection was closed\n");
        exit(1);
      }
      /* Answers have no byte behind this. */
      if (bytes[got - 1] != '}' && memmem(bytes, got, "}}", 2) == NULL) continue;
      if (strncmp(bytes, "HTTP/1.1 200", 12) != 0) failures += 1;
      else {
        /* All connections are opened at once, which no client does in use. */
        if (c->asked - begin >= 500000000) add(&times, now - c->asked);
        done += 1;
      }
      free_ones[free_count++] = c;
    }
  }
  failures += total - done - failures;
  printf("{\"answers\":%lld,\"failures\":%ld", (long long)done, failures);
  print_list("ms", &times);
  printf("}\n");
}

static void compose(int streamed, const char *model, int chunks, long pace) {
  char body[2048], filler[512];
  memset(filler, 'z', sizeof filler);
  int n = streamed ? snprintf(body, sizeof body, "{\"model\":\"%s\",\"stream\":true,\"chunks\":%d,\"pace\":%ld,\"messages\":[{\"role\":\"user\",\"content\":\"%.400s\"}]}", model, chunks, pace, filler)
                   : snprintf(body, sizeof body, "{\"model\":\"%s\",\"messages\":[{\"role\":\"user\",\"content\":\"%.500s\"}]}", model, filler);
  request_len = snprintf(request, sizeof request,
                         "POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: OpenAI/Python 2.9.0\r\nAccept: application/json\r\nAccept-Encoding: identity\r\n"
                         "Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
                         n, body);
}

int main(int argc, char **argv) {
  signal(SIGPIPE, SIG_IGN);
  struct rlimit files = {MOST, MOST};
  setrlimit(RLIMIT_NOFILE, &files);
  epfd = epoll_create1(0);
  if (argc >= 3 && strcmp(argv[1], "serve") == 0) serve(atoi(argv[2]));
  else if (argc == 8 && strcmp(argv[1], "load") == 0) {
    compose(1, argv[7], atoi(argv[4]), atol(argv[5]));
    load(atoi(argv[2]), atoi(argv[3]), atof(argv[6]));
  } else if (argc == 7 && strcmp(argv[1], "rate") == 0) {
    compose(0, argv[6], 0, 0);
    rate(atoi(argv[2]), atoi(argv[3]), atof(argv[4]), atof(argv[5]));
  } else {
    fprintf(stderr, "Usage: streams serve PORT | load PORT CONNECTIONS CHUNKS PACE SECONDS MODEL | rate PORT CONNECTIONS PER_SECOND SECONDS MODEL\n");
    return 64;
  }
  return 0;
}
