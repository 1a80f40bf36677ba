/** `--auth=basic` and `--auth=off` on a machine on which the service is installed. Ends without authentication. */
import { expect, test } from '@jest/globals';
import type { Machine, Ran } from '../support/require/require-machine.ts';

const USER = 'admin';
const PASSWORD = 'correct horse $taple';
const NAME = 'gpu-box.local';
const ROOT_CERTIFICATE = '/var/lib/caddy/.local/share/caddy/pki/authorities/local/root.crt';

export function authSteps(machine: () => Machine, snapshot: () => Promise<string>): void {
  const install = async (environment: string, options: string): Promise<Ran> =>
    await machine().run(['bash', '-c', `${environment} bash /opt/svc/current/installer/install.sh ${options}`]);
  const ADMIN = `SVC_ADMIN_USER=${USER} SVC_ADMIN_PASSWORD='${PASSWORD}' SVC_HOSTNAME=${NAME}`;
  /** Of a client that trusts the authority of the proxy and nothing else. */
  const ask = async (options: string): Promise<string> =>
    await machine().shell(
      `curl --silent --cacert ${ROOT_CERTIFICATE} --resolve ${NAME}:443:127.0.0.1 --resolve ${NAME}:80:127.0.0.1 --output /dev/null --write-out '%{http_code} %{redirect_url}' ${options}`,
    );

  test.each([
    [
      'no name and password',
      `SVC_HOSTNAME=${NAME}`,
      /^install\.sh: Set SVC_ADMIN_USER and SVC_ADMIN_PASSWORD, or run the installer in a terminal/,
    ],
    ['a short password', `SVC_ADMIN_USER=a SVC_ADMIN_PASSWORD=short`, /^install\.sh: Choose a password of 8 to 72 bytes/],
    ['a name with a space', `SVC_ADMIN_USER='a b' SVC_ADMIN_PASSWORD=12345678`, /^install\.sh: Set SVC_ADMIN_USER to a name of letters/],
    ['a name of a host that is none', `${ADMIN} SVC_HOSTNAME='gpu box'`, /^install\.sh: Set SVC_HOSTNAME to a name such as/],
    ['a public name without an address', `${ADMIN} SVC_HOSTNAME=llm.example.com`, /^install\.sh: Set SVC_TLS_EMAIL to your address/],
  ])(
    '--auth=basic with %s: stops with a line that says what to do, and changes nothing',
    async (_what, environment, line) => {
      const before = await snapshot();
      const { code, output } = await install(environment, '--auth=basic');
      expect({ code, output }).toMatchObject({ code: 1, output: expect.stringMatching(line) });
      expect(await snapshot()).toBe(before);
    },
    300_000,
  );

  test('the settings have a secret for the proxy before authentication is on', async () => {
    expect(await machine().shell(`grep -cE '^SVC_PROXY_SECRET=[0-9a-f]{64}$' /etc/svc/api.env`)).toBe('1');
  });

  test('--auth=basic turns on HTTPS, a password for people and tokens for programs, and says where the root certificate is', async () => {
    const { code, output } = await install(ADMIN, '--auth=basic');
    expect({ code, output }).toMatchObject({ code: 0, output: expect.stringContaining(ROOT_CERTIFICATE) });
    expect(await ask(`https://${NAME}/`)).toMatch(/^401/);
    expect(await ask(`--user ${USER}:wrong https://${NAME}/api/slots`)).toMatch(/^401/);
    expect(await ask(`--user '${USER}:${PASSWORD}' https://${NAME}/api/slots`)).toMatch(/^200/);
    const token = await machine().shell('runuser -u svc -- svcctl token create --label test 2>/dev/null');
    expect(
      await ask(
        `--header 'Authorization: Bearer ${token}' --data '{"messages":[]}' --header 'content-type: application/json' https://${NAME}/v1/chat/completions`,
      ),
    ).not.toMatch(/^40[13]/);
    expect(await ask(`--header 'X-Forwarded-Email: ${USER}' https://${NAME}/api/slots`)).toMatch(/^401/);
    expect(await ask(`--header 'X-Forwarded-Email: ${USER}' http://127.0.0.1:8080/api/slots`)).toMatch(/^401/);
  }, 300_000);

  test('the service can no longer be reached without the proxy', async () => {
    await expect(fetch(`http://${machine().address}:8080/api/health/system`)).rejects.toThrow('fetch failed');
  });

  test('port 80 redirects to HTTPS', async () => {
    expect(await ask(`http://${NAME}/api/status`)).toBe(`308 https://${NAME}/api/status`);
  });

  test("the path of the authority's root certificate is that of the documentation, and clients that have it trust the proxy", async () => {
    expect(await ask(`https://${NAME}/api/status`)).toMatch(/^200/);
    expect((await machine().run(['curl', '--silent', '--resolve', `${NAME}:443:127.0.0.1`, `https://${NAME}/api/status`])).code).not.toBe(
      0,
    );
  });

  test('the password is in no file, no log and no environment', async () => {
    const files = '/etc /opt/svc/current/installer /var/lib/svc /var/lib/caddy /var/log /run/svc-proxy /tmp';
    const places = [`cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n'`, 'journalctl --no-pager', `grep -rhsF '${PASSWORD}' ${files}`];
    for (const place of places) {
      expect([place, await machine().shell(`(${place}) | grep -cF '${PASSWORD}' || true`)]).toEqual([place, '0']);
    }
    expect(await machine().shell('stat -c "%U:%G %a" /etc/svc/Caddyfile /etc/svc/api.env')).toBe('root:caddy 640\nroot:svc 640');
  });

  test('the unit of the proxy is hardened', async () => {
    const rating = await machine().shell('systemd-analyze security --no-pager svc-proxy.service | tail -n 1');
    expect(Number(/: ([0-9.]+) /.exec(rating)?.[1] ?? NaN)).toBeLessThanOrEqual(4);
  });

  test('--auth=basic again changes nothing, with and without the password', async () => {
    const files = await snapshot();
    expect(await install(ADMIN, '--auth=basic')).toMatchObject({ code: 0, output: expect.stringContaining('Nothing to change') });
    expect(await install('', '--auth=basic')).toMatchObject({ code: 0, output: expect.stringContaining('Nothing to change') });
    expect(await snapshot()).toBe(files);
  }, 300_000);

  test('the manual way back of the documentation opens the service again', async () => {
    await machine().shell(
      "systemctl disable --now svc-proxy && sed -i 's/^SVC_AUTH_ENABLED=.*/SVC_AUTH_ENABLED=0/' /etc/svc/api.env && systemctl restart svc-api",
    );
    await machine().shell(
      'for i in $(seq 300); do curl --silent --fail http://127.0.0.1:8080/api/slots >/dev/null && exit 0; sleep 0.1; done; exit 1',
    );
    expect((await fetch(`http://${machine().address}:8080/api/slots`)).status).toBe(200);
    await machine().shell('ls /etc/svc/Caddyfile');
  }, 300_000);

  test('--auth=basic after that needs no password: the proxy has kept it', async () => {
    expect(await install('', '--auth=basic')).toMatchObject({ code: 0 });
    expect(await ask(`--user '${USER}:${PASSWORD}' https://${NAME}/api/slots`)).toMatch(/^200/);
  }, 300_000);

  test('--auth=off opens the service again and keeps the proxy, and doing it again changes nothing', async () => {
    expect(await install('', '--auth=off')).toMatchObject({ code: 0 });
    expect((await fetch(`http://${machine().address}:8080/api/slots`)).status).toBe(200);
    expect(await machine().shell(`ls /etc/svc/Caddyfile ${ROOT_CERTIFICATE} && systemctl is-enabled svc-proxy || true`)).toContain(
      'disabled',
    );
    const files = await snapshot();
    expect(await install('', '--auth=off')).toMatchObject({ code: 0, output: expect.stringContaining('Nothing to change') });
    expect(await snapshot()).toBe(files);
  }, 300_000);
}
