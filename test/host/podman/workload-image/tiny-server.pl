#!/usr/bin/perl
# tiny-server --host HOST --port PORT [--ignore-term]: says its environment at /env, ends with a code at /exit/<code>, "hello" elsewhere.
# The same as ../tiny-server.mjs, in the one language that a minimal Debian has.
use strict;
use warnings;
use IO::Socket::INET;

my %option = (host => '127.0.0.1');
while (@ARGV) {
  my $name = shift @ARGV;
  $name =~ s/^--//;
  $option{$name} = $name eq 'ignore-term' ? 1 : shift @ARGV;
}
$| = 1;
$SIG{TERM} = $option{'ignore-term'} ? 'IGNORE' : sub { exit 0 };
print STDOUT "to stdout\n";
print STDERR "to stderr\n";
my $server = IO::Socket::INET->new(LocalAddr => $option{host}, LocalPort => $option{port}, Listen => 16, ReuseAddr => 1) or die "cannot listen: $!\n";
print STDOUT "listening\n";
while (1) {
  my $client = $server->accept or next;
  my $line = <$client> // '';
  my ($path) = $line =~ m{^\S+ (\S+)};
  while (defined(my $header = <$client>)) { last if $header =~ /^\r?$/; }
  my $body = ($path // '') eq '/env' ? join('', map { "$_=$ENV{$_}\n" } sort keys %ENV) : 'hello';
  print $client "HTTP/1.1 200 OK\r\nContent-Length: " . length($body) . "\r\nConnection: close\r\n\r\n$body";
  close $client;
  exit $1 if ($path // '') =~ m{^/exit/(\d+)$};
}
