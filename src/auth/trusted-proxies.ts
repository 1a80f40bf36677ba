/** Which addresses belong to trusted proxies, and whether one has proven itself with its secret. */
import { createHash, timingSafeEqual } from 'node:crypto';
import { BlockList, isIPv6 } from 'node:net';

/** `entries` are addresses and CIDR ranges, which the settings have checked. An IPv4 address also matches in its IPv6 form. */
export function createProxyMatcher(entries: readonly string[]): (address: string | undefined) => boolean {
  const list = new BlockList();
  for (const entry of entries) {
    const [address = '', prefix] = entry.split('/');
    const family = isIPv6(address) ? 'ipv6' : 'ipv4';
    if (prefix === undefined) list.addAddress(address, family);
    else list.addSubnet(address, Number(prefix), family);
  }
  return (address) => {
    if (address === undefined) return false;
    const plain = address.startsWith('::ffff:') ? address.slice('::ffff:'.length) : address;
    return list.check(plain, isIPv6(plain) ? 'ipv6' : 'ipv4');
  };
}

/** In a time that does not depend on the value. Without a secret, every value is right. */
export function createSecretMatcher(secret: string | undefined): (value: string | undefined) => boolean {
  if (secret === undefined) return () => true;
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
  const wanted = digest(secret);
  return (value) => value !== undefined && timingSafeEqual(digest(value), wanted);
}
