/** The package for Debian on a machine without the service: installed, upgraded, removed, purged. Ends without it. */
import { expect, test } from '@jest/globals';
import type { Machine, Ran } from '../support/require/require-machine.ts';

/** Makes a package of another version from the one that was built. */
const REPACK = String.raw`
rm -rf /root/repacked && dpkg-deb --raw-extract /root/first/svc_0.2.0_*.deb /root/repacked && cd /root/repacked
mv opt/svc/0.2.0 opt/svc/0.3.0 && ln -sfn 0.3.0 opt/svc/current
sed -i 's/^Version: .*/Version: 0.3.0/' DEBIAN/control && sed -i 's|/opt/svc/0\.2\.0|/opt/svc/0.3.0|' DEBIAN/postinst
cd opt/svc/0.3.0 && sed -i 's/"version": "[^"]*"/"version": "0.3.0"/' package.json
find . -type f ! -name SHA256SUMS -printf '%P\n' | sort | xargs -d '\n' sha256sum >SHA256SUMS
dpkg-deb -Znone --build /root/repacked /root/svc_0.3.0.deb >/dev/null && rm -rf /root/repacked`;

export function packageSteps(machine: () => Machine): void {
  const apt = async (command: string): Promise<Ran> =>
    await machine().run(['bash', '-c', `DEBIAN_FRONTEND=noninteractive apt-get ${command} -y -qq 2>&1`]);
  const installer = async (options: string): Promise<Ran> =>
    await machine().run(['bash', '-c', `bash /opt/svc/current/installer/install.sh ${options}`]);
  const version = async (): Promise<string> =>
    await machine().shell(
      `for i in $(seq 600); do curl --silent --fail http://127.0.0.1:8080/api/status && exit 0; sleep 0.1; done | grep -o '"version":"[^"]*"'`,
    );

  test('the package installs a service that answers, with its user, slots, completion and hardened unit', async () => {
    expect(await apt('install /root/first/svc_0.2.0_*.deb')).toMatchObject({ code: 0 });
    expect(await version()).toBe('"version":"0.2.0"');
    expect(await machine().shell('svcctl get slots -o name')).toContain('slot/primary');
    expect(await machine().shell('stat -c "%U:%G %a" /etc/svc /etc/svc/api.env /var/lib/svc')).toBe(
      'root:svc 1771\nroot:svc 640\nsvc:svc 750',
    );
    expect(await machine().shell('systemctl is-enabled svc-api')).toBe('enabled');
    expect(await machine().shell(`grep -cE '^SVC_PROXY_SECRET=[0-9a-f]{64}$' /etc/svc/api.env`)).toBe('1');
    expect(await machine().shell('source /usr/share/bash-completion/completions/svcctl && complete -p svcctl')).toContain('svcctl');
    expect(await machine().shell('zcat /usr/share/man/man1/svcctl.1.gz | head -n 2')).toContain('.TH SVCCTL 1');
    const rating = await machine().shell('systemd-analyze security --no-pager svc-api.service | tail -n 1');
    expect(Number(/: ([0-9.]+) /.exec(rating)?.[1] ?? NaN)).toBeLessThanOrEqual(4);
  }, 600_000);

  test('the scripts of the package can run again: each has the same result', async () => {
    const script = (name: string, words: string): string =>
      `DPKG_MAINTSCRIPT_PACKAGE=svc DPKG_MAINTSCRIPT_NAME=${name} bash /var/lib/dpkg/info/svc.${name} ${words}`;
    const files = async (): Promise<string> =>
      await machine().shell(
        `find /etc/svc /etc/systemd /var/lib/svc/slots /opt/svc/current /run/systemd/system -printf '%p %y %m %u:%g %l\n' | sort; sha256sum /etc/svc/api.env /etc/svc/slots/*; getent passwd svc`,
      );
    const before = await files();
    await machine().shell(`${script('postinst', 'configure 0.2.0')}; ${script('postinst', 'configure 0.2.0')}`);
    expect(await version()).toBe('"version":"0.2.0"');
    expect(await files()).toBe(before);
    await machine().shell(`${script('prerm', 'remove')}; ${script('prerm', 'remove')}`);
    expect((await machine().run(['systemctl', 'is-active', 'svc-api'])).code).not.toBe(0);
    await machine().shell(`${script('postinst', 'abort-remove')}; ${script('postinst', 'abort-remove')}`);
    expect(await version()).toBe('"version":"0.2.0"');
    expect(await files()).toBe(before);
    await machine().shell('cp /var/lib/dpkg/info/svc.postrm /root');
  }, 300_000);

  test.each([
    ['--rollback', /^install\.sh: Install the package of the previous release/],
    ['--uninstall', /^install\.sh: Use the package manager: apt-get remove svc/],
    ['--url https://127.0.0.1:9/svc.tar.gz', /^install\.sh: Upgrade the package instead/],
  ])(
    'install.sh %s leaves to the package manager what is its own',
    async (options, line) => {
      expect(await installer(options)).toMatchObject({ code: 1, output: expect.stringMatching(line) });
      expect(await version()).toBe('"version":"0.2.0"');
    },
    300_000,
  );

  test('the installer of the package turns authentication on and off', async () => {
    const admin = `env SVC_ADMIN_USER=admin SVC_ADMIN_PASSWORD=12345678 SVC_HOSTNAME=gpu-box.local`;
    expect(await machine().run(['bash', '-c', `${admin} bash /opt/svc/current/installer/install.sh --auth=basic`])).toMatchObject({
      code: 0,
    });
    expect(await machine().shell(`curl --silent --output /dev/null --write-out '%{http_code}' http://127.0.0.1:8080/api/slots`)).toBe(
      '401',
    );
    expect(await installer('--auth=off')).toMatchObject({ code: 0 });
    expect(await installer('')).toMatchObject({ code: 0, output: expect.stringContaining('Nothing to change') });
    expect(await machine().shell('ls /etc/systemd/system/svc-api.service /usr/local/bin/svcctl 2>/dev/null || true')).toBe('');
  }, 600_000);

  test('an upgrade of the package keeps slots and settings', async () => {
    await machine().shell(`${REPACK}
      echo SVC_LOG_LEVEL=warn >>/etc/svc/api.env; rm /etc/svc/slots/tts.toml; cat /etc/svc/slots/* >/root/slots; cp /etc/svc/api.env /root`);
    expect(await apt('install /root/svc_0.3.0.deb')).toMatchObject({ code: 0 });
    expect(await version()).toBe('"version":"0.3.0"');
    expect(
      await machine().shell(
        'cat /etc/svc/slots/* | cmp - /root/slots; cmp /etc/svc/api.env /root/api.env; tail -n 1 /etc/svc/api.env; stat -c "%U:%G %a" /etc/svc/api.env',
      ),
    ).toBe('SVC_LOG_LEVEL=warn\nroot:svc 640');
    expect(await machine().shell('ls /opt/svc')).toBe('0.3.0\ncurrent');
  }, 600_000);

  test('removing the package ends the service, and keeps configuration and models', async () => {
    expect(await apt('remove svc')).toMatchObject({ code: 0 });
    expect(await machine().shell('pgrep --list-full --full [/]opt/svc || true')).toBe('');
    expect(
      await machine().shell('ls /opt/svc 2>/dev/null || true; ls /etc/svc/api.env /etc/svc/slots/primary.toml; ls -d /var/lib/svc'),
    ).toBe('/etc/svc/api.env\n/etc/svc/slots/primary.toml\n/var/lib/svc');
  }, 300_000);

  test('purging the package leaves nothing of it', async () => {
    expect(await apt('purge svc')).toMatchObject({ code: 0 });
    await machine().shell('DPKG_MAINTSCRIPT_PACKAGE=svc DPKG_MAINTSCRIPT_NAME=postrm bash /root/svc.postrm purge; rm /root/svc.postrm');
    const left = await machine().shell(
      `find /etc /opt /usr/bin /usr/lib/systemd /usr/share /var/lib /var/cache /run/systemd -xdev -name '*svc*' ! -path '*/dpkg/*' ! -path '*/apt/*' ! -path '/usr/share/*/perl*' 2>/dev/null || true; getent passwd svc || true`,
    );
    expect(left).toBe('');
  }, 300_000);
}
