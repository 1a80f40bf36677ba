/** What an administrator does with the installer on a new machine, in this order. */
import { beforeAll, describe, expect, test } from '@jest/globals';
import { DEMO_SENTENCES } from '../../toolboxes/demo/demo-models.ts';
import { copyModels, type Machine, type Ran } from '../support/require/require-machine.ts';
import { authSteps } from './auth-steps.ts';
import { backupSteps } from './backup-steps.ts';
import { chatSteps } from './chat-steps.ts';
import { failingPrerequisites } from './failing-prerequisites.ts';
import { noRouteSteps } from './no-route-steps.ts';
import { packageSteps } from './package-steps.ts';
import { podmanSteps } from './podman-steps.ts';

const FIRST = '0.2.0';
const SECOND = '0.3.0';
/** Everything that the installer might change. Lists of packages and logs are the own of the system, and the contents of the state directory that of the service. */
const SNAPSHOT = `{ find /etc /opt /usr/local /var/lib /var/cache /run/systemd/system -xdev ! -path '/var/lib/systemd/*' ! -path '/var/lib/svc/*' ! -path '/var/lib/svc-chat/*' ! -path '/var/lib/containers*' ! -path '/var/lib/apt/*' ! -path '/var/cache/apt/*' ! -name '.*.lock' -printf '%p %y %m %u:%g %l\\n' | grep -v '^/etc/[a-z]*-  *' | sort; cat /etc/passwd /etc/group; }`;

export function describeInstaller(suite: 'bookworm' | 'trixie', clean: () => Promise<Machine>): void {
  describe(`The installer on Debian "${suite}"`, () => {
    let machine: Machine;
    let before = '';
    const install = async (...args: string[]): Promise<Ran> => await machine.run(['bash', '/root/first/install.sh', ...args]);
    const upgrade = async (...args: string[]): Promise<Ran> => await machine.run(['bash', `/root/${SECOND}/installer/install.sh`, ...args]);
    const snapshot = async (): Promise<string> => await machine.shell(SNAPSHOT);
    const mainPid = async (): Promise<string> => await machine.shell('systemctl show --property MainPID --value svc-api');
    const status = async (): Promise<unknown> => await (await fetch(`http://${machine.address}:8080/api/status`)).json();

    /** Makes a release of another version from the one that is installed, in `/root/<version>`. */
    async function makeRelease(version: string, edit: string): Promise<void> {
      await machine.shell(`cp -a /opt/svc/${FIRST} /root/${version} && cd /root/${version} && ${edit}
        sed -i 's/"version": "[^"]*"/"version": "${version}"/' package.json
        find . -type f ! -name SHA256SUMS -printf '%P\\n' | sort | xargs -d '\\n' sha256sum >SHA256SUMS`);
    }

    async function answers(): Promise<void> {
      for (let attempt = 0; attempt < 300; attempt += 1) {
        const up = await fetch(`http://${machine.address}:8080/api/health/system`).then(
          ({ ok }) => ok,
          () => false,
        );
        if (up) return;
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
      throw new Error(await machine.shell('journalctl --unit svc-api --lines 30 --no-pager'));
    }

    async function ask(): Promise<string> {
      const body = JSON.stringify({ messages: [{ role: 'user', content: 'Hello' }], max_tokens: 40, temperature: 0 });
      const options = { method: 'POST', headers: { 'content-type': 'application/json' }, body };
      const answer = await fetch(`http://${machine.address}:8080/v1/chat/completions`, options);
      return await answer.text();
    }

    beforeAll(async () => {
      machine = await clean();
      await machine.shell('ln -s dist /root/first');
      await machine.shell(`dpkg-query --show --showformat '\${Package}\\n' | sort >/root/packages`);
      before = await snapshot();
      // The first machine of all is made from the packages of Debian.
    }, 900_000);

    failingPrerequisites(() => machine, snapshot);

    test('--dry-run says what would be done, and changes nothing', async () => {
      const { code, output } = await install('--dry-run');
      expect({ code, output }).toMatchObject({ code: 0, output: expect.stringContaining('would: create the system user svc') });
      expect(output).not.toContain('Note: this installer was tested on');
      expect(await snapshot()).toBe(before);
    }, 300_000);

    test('on another distribution, the installer says that it was not tested there', async () => {
      const release = `printf 'ID=fedora\nPRETTY_NAME="Fedora Linux 44"\n' >/tmp/os-release && mount --bind /tmp/os-release /etc/os-release`;
      const { code, output } = await machine.run([
        'unshare',
        '--mount',
        'bash',
        '-c',
        `${release} && bash /root/first/install.sh --dry-run`,
      ]);
      expect({ code, output }).toMatchObject({ code: 0, output: expect.stringContaining('and not on "Fedora Linux 44"') });
      expect(await snapshot()).toBe(before);
    }, 300_000);

    test('installs a service that answers on the network, and says where', async () => {
      const { code, output } = await install('--chat=off');
      expect({ code, output }).toMatchObject({ code: 0, output: expect.stringContaining(`svc ${FIRST} is running`) });
      expect(output).toMatch(/API +http:\/\/svc-[a-z]+:8080\/v1/);
      expect(await status()).toMatchObject({ version: FIRST, auth_enabled: false });
      expect(await machine.shell('svcctl get slots -o name')).toBe('slot/embed\nslot/img\nslot/primary\nslot/stt\nslot/tts');
      expect(await machine.shell('stat -c "%U:%G %a" /etc/svc/api.env /var/lib/svc')).toBe('root:svc 640\nsvc:svc 750');
      expect(await machine.shell('source /usr/local/share/bash-completion/completions/svcctl && complete -p svcctl')).toContain('svcctl');
      expect(await machine.shell('head -n 2 /usr/local/share/man/man1/svcctl.1')).toContain('.TH SVCCTL 1');
    }, 300_000);

    test('serves the dashboard at "/", with its scripts', async () => {
      const answer = await fetch(`http://${machine.address}:8080/`);
      expect([answer.status, answer.headers.get('content-type')]).toEqual([200, expect.stringMatching(/^text\/html/)]);
      const [, script = ''] = /<script[^>]* src="([^"]+)"/.exec(await answer.text()) ?? [];
      const loaded = await fetch(new URL(script, answer.url));
      expect([loaded.status, loaded.headers.get('content-type')]).toEqual([200, expect.stringMatching(/javascript/)]);
      expect((await loaded.text()).length).toBeGreaterThan(10_000);
    });

    test('the unit is hardened', async () => {
      const rating = await machine.shell('systemd-analyze security --no-pager svc-api.service | tail -n 1');
      expect(Number(/: ([0-9.]+) /.exec(rating)?.[1] ?? NaN)).toBeLessThanOrEqual(4);
    });

    test('installing again changes nothing', async () => {
      const [pid, files] = [await mainPid(), await snapshot()];
      expect(await install()).toMatchObject({ code: 0, output: expect.stringContaining('Nothing to change') });
      expect(await mainPid()).toBe(pid);
      expect(await snapshot()).toBe(files);
    }, 300_000);

    noRouteSteps(() => machine);

    test('serves a model without a network, npm and llama-server', async () => {
      await copyModels(machine, '/var/lib/svc/models');
      await machine.shell('sed -i "s/^default = .*/default = \\"demo-fox\\"/" /etc/svc/slots/primary.toml');
      await machine.shell('svcctl slot load primary --wait --timeout 2m || { svcctl explain primary; exit 1; }');
      expect(await ask()).toContain(DEMO_SENTENCES['demo-fox'].slice(0, 12));
    }, 300_000);

    test('a service that is killed comes back, and its model server runs on', async () => {
      const [pid, server] = [await mainPid(), await machine.shell('pgrep --full embedded/[m]ain.ts')];
      await machine.shell('systemctl kill --signal KILL --kill-who main svc-api');
      await answers();
      expect(await mainPid()).not.toBe(pid);
      expect(await ask()).toContain(DEMO_SENTENCES['demo-fox'].slice(0, 12));
      expect(await machine.shell('pgrep --full embedded/[m]ain.ts')).toBe(server);
      // docs/troubleshooting.md quotes what systemd says of it.
      expect(await machine.shell('journalctl --unit svc-api --no-pager')).toMatch(
        /Found left-over process \d+ .* in control group while starting unit/,
      );
    }, 300_000);

    backupSteps(() => machine);
    authSteps(() => machine, snapshot);
    chatSteps(() => machine, snapshot);

    test('an upgrade keeps slots, settings and model servers, and doing it again changes nothing', async () => {
      await makeRelease(SECOND, 'echo >>CHANGELOG.md');
      await machine.shell('echo SVC_LOG_LEVEL=warn >>/etc/svc/api.env');
      const slots = await machine.shell('cat /etc/svc/slots/*');
      expect(await upgrade()).toMatchObject({ code: 0, output: expect.stringContaining(`Upgrading svc from ${FIRST} to ${SECOND}`) });
      expect(await status()).toMatchObject({ version: SECOND });
      expect(await machine.shell('cat /etc/svc/slots/*')).toBe(slots);
      expect(await machine.shell('tail -n 1 /etc/svc/api.env')).toBe('SVC_LOG_LEVEL=warn');
      expect(await ask()).toContain(DEMO_SENTENCES['demo-fox'].slice(0, 12));
      const files = await snapshot();
      expect(await upgrade()).toMatchObject({ code: 0, output: expect.stringContaining('Nothing to change') });
      expect(await snapshot()).toBe(files);
    }, 300_000);

    test('a release that does not start is replaced by the one before', async () => {
      const edit = `for part in src/chunks/serve-*.mjs; do echo 'throw new Error("broken");' >"$part"; done; sed -i 's/^Type=notify/Type=exec/' installer/templates/svc-api.service; sed -i 's/^SECONDS_TO_START=.*/SECONDS_TO_START=3/' installer/lib/service.sh`;
      await makeRelease('0.4.0', edit);
      const { code, output } = await machine.run(['bash', '/root/0.4.0/installer/install.sh']);
      expect({ code, output }).toMatchObject({
        code: 1,
        output: expect.stringContaining(`svc 0.4.0 does not start here, so ${SECOND} runs again`),
      });
      await answers();
      expect(await status()).toMatchObject({ version: SECOND });
      expect(await machine.shell('systemctl show --property Type svc-api')).toBe('Type=notify');
    }, 300_000);

    test('--rollback returns to the previous release, and doing it again changes nothing', async () => {
      expect(await upgrade('--rollback')).toMatchObject({
        code: 0,
        output: expect.stringContaining(`Returning from svc ${SECOND} to ${FIRST}`),
      });
      expect(await status()).toMatchObject({ version: FIRST });
      const files = await snapshot();
      expect(await upgrade('--rollback')).toMatchObject({ code: 0, output: expect.stringContaining('Nothing to change') });
      expect(await snapshot()).toBe(files);
    }, 300_000);

    test('after a reboot, the service answers without anyone doing anything', async () => {
      await machine.reboot();
      await answers();
      expect(await status()).toMatchObject({ version: FIRST });
    }, 300_000);

    // The machine of Debian 12 has the same installer, with podman 4.3.
    if (suite === 'trixie') podmanSteps(() => machine);

    test('--uninstall keeps configuration and models, and doing it again changes nothing', async () => {
      expect(await upgrade('--uninstall')).toMatchObject({ code: 0, output: expect.stringContaining('svc is removed') });
      expect(await machine.shell('pgrep --list-full --full [/]opt/svc || true')).toBe('');
      expect((await machine.run(['ls', '/opt/svc'])).code).not.toBe(0);
      expect(await machine.shell('ls -R /etc/svc/slots /var/lib/svc/models')).toContain('demo-fox');
      expect(await upgrade('--uninstall')).toMatchObject({ code: 0, output: expect.stringContaining('Nothing to change') });
    }, 300_000);

    test('--uninstall --purge leaves the machine as it was before the installation', async () => {
      expect(await upgrade('--uninstall', '--purge')).toMatchObject({ code: 0 });
      // The proxy and podman are packages of the system, which the installer leaves installed.
      await machine.shell(`dpkg-query --show --showformat '\${Package}\\n' | sort | comm -13 /root/packages - | xargs apt-get purge -y -qq >/dev/null 2>&1
        rm -rf /var/lib/caddy /etc/containers/containers.conf.d/20-test.conf /etc/containers/networks /etc/cni /var/lib/cni /var/cache/containers; userdel caddy 2>/dev/null || true; groupdel caddy 2>/dev/null || true`);
      expect(withoutPackages(await snapshot())).toEqual(withoutPackages(before));
      expect(await upgrade('--uninstall', '--purge')).toMatchObject({ code: 0, output: expect.stringContaining('Nothing to change') });
    }, 300_000);

    packageSteps(() => machine);
  });
}

/** Directories of packages, what packages leave behind, and backups of lists of users are not the installer's. */
function withoutPackages(snapshot: string): readonly string[] {
  return snapshot
    .split('\n')
    .filter((line) => !/^\/(?:var\/(?:lib|cache)\/(?:apt|dpkg|debconf|systemd)|etc\/(?:mime|ld\.so|passwd-|group-|g?shadow))/.test(line));
}
