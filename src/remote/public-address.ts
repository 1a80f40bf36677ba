/** Whether an address is one of the public internet. */
import { BlockList, isIP } from 'node:net';
import { networkInterfaces } from 'node:os';

/** Everything that is not public may be a service that trusts its own network, or the metadata of a cloud. */
export type IsPublicAddress = (address: string) => boolean;

/** https://www.iana.org/assignments/iana-ipv4-special-registry, multicast, reserved, and host services of Azure. */
const SPECIAL_V4 = [
  ...'0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 168.63.129.16/32 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24'.split(' '),
  ...'192.0.2.0/24 192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/3'.split(' '),
];
/** Only this is global unicast (RFC 4291), except protocols, tunnels to IPv4, and documentation. */
const GLOBAL_V6 = ['2000::/3'];
/** https://www.iana.org/assignments/iana-ipv6-special-registry */
const SPECIAL_V6 = ['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20'];

/** Returns whether an address is public. Addresses of this machine are not: its own services may trust them. */
export function createAddressCheck(ownAddresses: () => readonly string[] = addressesOfInterfaces): IsPublicAddress {
  const special = listOf('ipv4', SPECIAL_V4);
  const global = listOf('ipv6', GLOBAL_V6);
  const specialV6 = listOf('ipv6', SPECIAL_V6);
  return (address) => {
    const family = isIP(address);
    if (family === 0 || ownAddresses().includes(address)) return false;
    if (family === 4) return !special.check(address, 'ipv4');
    return global.check(address, 'ipv6') && !specialV6.check(address, 'ipv6');
  };
}

function listOf(family: 'ipv4' | 'ipv6', subnets: readonly string[]): BlockList {
  const list = new BlockList();
  for (const subnet of subnets) {
    const [network = '', prefix = ''] = subnet.split('/');
    list.addSubnet(network, Number(prefix), family);
  }
  return list;
}

function addressesOfInterfaces(): readonly string[] {
  return Object.values(networkInterfaces()).flatMap((all = []) => all.map(({ address }) => address));
}
