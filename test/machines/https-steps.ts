/** HTTPS with authorities of the machine and of the network, and passwords that are typed. */
import { beforeAll, describe, expect, test } from '@jest/globals';
import { APT_LISTS, type Machine, type Ran } from '../support/require/require-machine.ts';

const ROOT_CERTIFICATE = '/var/lib/caddy/.local/share/caddy/pki/authorities/local/root.crt';
const NAME = 'llm.example.com';

/** `ports`: where Pebble looks for the answers to its challenges, HTTP-01 and TLS-ALPN-01. */
const pebble = (httpPort: number, tlsPort: number): string => String.raw`
  rm -rf /root/pebble /var/lib/caddy/.local/share/caddy/certificates /var/lib/caddy/.local/share/caddy/acme; mkdir -p /root/pebble && cd /root/pebble
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost -keyout key.pem -out cert.pem 2>/dev/null
  cp cert.pem /usr/local/share/ca-certificates/pebble.crt && update-ca-certificates >/dev/null 2>&1
  echo '{"pebble":{"listenAddress":"127.0.0.1:14000","managementListenAddress":"127.0.0.1:15000","certificate":"/root/pebble/cert.pem","privateKey":"/root/pebble/key.pem","httpPort":${httpPort},"tlsPort":${tlsPort}}}' >config.json
  systemctl stop pebble 2>/dev/null || true
  systemd-run --quiet --unit pebble --setenv PEBBLE_VA_NOSLEEP=1 --setenv PEBBLE_WFE_NONCEREJECT=0 pebble -config /root/pebble/config.json
  for i in $(seq 100); do curl --silent --insecure --output /dev/null https://localhost:14000/dir && break; sleep 0.1; done`;

export function describeHttps(suite: 'bookworm' | 'trixie', clean: () => Promise<Machine>): void {
  describe(`HTTPS on Debian "${suite}"`, () => {
    let machine: Machine;
    const install = async (environment: string, options = ''): Promise<Ran> =>
      await machine.run(['bash', '-c', `${environment} bash /opt/svc/current/installer/install.sh --auth=basic ${options}`]);
    const status = async (password: string, url: string, options = `--cacert ${ROOT_CERTIFICATE}`): Promise<string> =>
      await machine.shell(
        `curl --silent ${options} --user 'admin:${password}' --output /dev/null --write-out '%{http_code} %{redirect_url}' ${url}`,
      );
    /** The installer in a terminal. */
    const type = async (typed: string): Promise<Ran> =>
      await machine.run(
        ['script', '--quiet', '--return', '--command', 'bash /opt/svc/current/installer/install.sh --auth=basic', '/dev/null'],
        typed,
      );
    const ADMIN = `SVC_ADMIN_USER=admin SVC_ADMIN_PASSWORD=12345678`;

    beforeAll(async () => {
      machine = await clean();
      await machine.shell(
        `bash /root/dist/install.sh --chat=off; ${APT_LISTS}; apt-get install -y -qq --no-install-recommends caddy pebble openssl >/dev/null 2>&1`,
      );
    }, 300_000);

    describe('In a terminal', () => {
      test('a wrong name is refused before a password is asked for', async () => {
        const { code, output } = await type('a b\n12345678\n12345678\n');
        expect(code).toBe(1);
        expect(output).toContain('Set SVC_ADMIN_USER to a name of letters');
        expect(output).not.toContain('Password');
      }, 60_000);

      test('a password keeps the spaces at its ends', async () => {
        expect(await type('admin\n two spaces \n two spaces \n')).toMatchObject({ code: 0 });
        expect(await status(' two spaces ', 'https://$(hostname).local/api/slots --resolve $(hostname).local:443:127.0.0.1')).toMatch(
          /^200/,
        );
      }, 300_000);

      test('the next run asks for a new password, and an empty one keeps the present one', async () => {
        const url = 'https://$(hostname).local/api/slots --resolve $(hostname).local:443:127.0.0.1';
        expect(await type('\nanother one\nanother one\n')).toMatchObject({
          code: 0,
          output: expect.stringContaining('New password of admin'),
        });
        expect(await status('another one', url)).toMatch(/^200/);
        expect(await type('\n\n')).toMatchObject({ code: 0, output: expect.stringContaining('Nothing to change') });
        expect(await status('another one', url)).toMatch(/^200/);
      }, 300_000);
    });

    test('the home of root has no authority', async () => {
      expect(await machine.shell('ls -d /root/.local /root/.config 2>/dev/null || true')).toBe('');
    });

    test('HTTP at an address leads to the name', async () => {
      const answer = await fetch(`http://${machine.address}/api/status`, { redirect: 'manual' });
      expect([answer.status, answer.headers.get('location')]).toEqual([308, `https://svc-${suite}.local/api/status`]);
    });

    test.each([
      ['a name of the network', () => 'gpu.home.arpa', '--internal-ca'],
      ['a name without a dot', () => 'gpu-box', ''],
      ['an address', () => machine.address, ''],
    ])(
      '%s gets a certificate of the authority of this machine',
      async (_what, nameOf, options) => {
        const name = nameOf();
        const { code, output } = await install(`${ADMIN} SVC_HOSTNAME=${name}`, options);
        expect({ code, output }).toMatchObject({ code: 0, output: expect.stringContaining('From the authority of this machine') });
        expect(
          await status('12345678', `https://${name}/api/slots`, `--cacert ${ROOT_CERTIFICATE} --resolve ${name}:443:${machine.address}`),
        ).toMatch(/^200/);
        expect(await install('')).toMatchObject({ code: 0, output: expect.stringContaining('Nothing to change') });
      },
      300_000,
    );

    test.each([
      ['HTTP-01', 80, 5999],
      ['TLS-ALPN-01', 5999, 443],
    ])(
      'a public name gets its certificate by %s, and the report says so',
      async (_challenge, httpPort, tlsPort) => {
        await machine.shell(
          `grep -q ${NAME} /etc/hosts || echo '127.0.0.1 ${NAME}' >>/etc/hosts; ${pebble(httpPort, tlsPort)}; systemctl stop svc-proxy 2>/dev/null || true`,
        );
        const { code, output } = await install(
          `${ADMIN} SVC_HOSTNAME=${NAME} SVC_TLS_EMAIL=you@example.com SVC_ACME_CA=https://localhost:14000/dir`,
        );
        expect({ code, output }).toMatchObject({ code: 0, output: expect.stringMatching(/Certificate +From "?Pebble/) });
        expect(output).not.toContain('Clients trust the certificate');
        expect(await status('12345678', `https://${NAME}/api/slots`, '--insecure')).toMatch(/^200/);
      },
      300_000,
    );

    test('a public name whose authority does not answer: the report says that there is no certificate', async () => {
      const { code, output } = await install(
        `${ADMIN} SVC_HOSTNAME=other.example.com SVC_TLS_EMAIL=you@example.com SVC_ACME_CA=https://localhost:9/dir`,
      );
      expect({ code, output }).toMatchObject({ code: 0, output: expect.stringContaining('None for https://other.example.com') });
      expect(output).toContain('journalctl -u svc-proxy');
      expect(await machine.run(['svcctl', 'doctor'])).toMatchObject({ code: 1, output: expect.stringMatching(/fail +certificate/) });
    }, 300_000);
  });
}
