/** What the service and its installer say and do on a host: the report, `svcctl doctor`, the journal, little room, and an installer that was killed. */
import { beforeAll, describe, expect, test } from '@jest/globals';
import { DEMO_SENTENCES } from '../../toolboxes/demo/demo-models.ts';
import { APT_LISTS, copyModels, type Machine, type Ran } from '../support/require/require-machine.ts';

/** Runs in a namespace of its own in which /opt/svc has 50 MiB left. */
export const LITTLE_ROOM = String.raw`unshare --mount bash -c '
  mount -t tmpfs -o size=$(($(du --summarize --block-size=1M /opt/svc | cut -f 1) + 50))m none /mnt && cp -a /opt/svc/. /mnt/ && mount --bind /mnt /opt/svc && COMMAND'`;

export function describeHost(suite: 'bookworm' | 'trixie', clean: () => Promise<Machine>): void {
  describe(`The service as part of the system on Debian "${suite}"`, () => {
    let machine: Machine;
    const install = async (options = ''): Promise<Ran> =>
      await machine.run(['bash', '-c', `bash /opt/svc/current/installer/install.sh ${options}`]);
    const mainPid = '$(systemctl show --property MainPID --value svc-api)';

    beforeAll(async () => {
      machine = await clean();
      await machine.shell('bash /root/dist/install.sh --chat=off');
      await copyModels(machine, '/var/lib/svc/models');
      await machine.shell('sed -i "s/^default = .*/default = \\"demo-fox\\"/" /etc/svc/slots/primary.toml');
    }, 300_000);

    test.each([
      ['open', ''],
      ['closed', 'SVC_LISTEN=127.0.0.1:8080'],
      ['with authentication and without a proxy', 'SVC_AUTH_ENABLED=1'],
    ])(
      '%s: the report names the mode, and its first command works as it stands',
      async (mode, line) => {
        await machine.shell(
          `sed -i '/^SVC_LISTEN=/d; s/^SVC_AUTH_ENABLED=.*/SVC_AUTH_ENABLED=0/; s/^${line.split('=')[0] ?? ''}=.*//' /etc/svc/api.env; echo '${line}' >>/etc/svc/api.env; systemctl restart svc-api`,
        );
        const { code, output } = await install();
        expect({ code, output }).toMatchObject({ code: 0 });
        expect(/Everyone who reaches these addresses/.test(output)).toBe(mode === 'open');
        expect(output.includes(`http://${machine.address}:8080`)).toBe(mode === 'open');
        expect(output).toContain('No chat page');
        const commands = /question, which downloads.*:\n(.*)/s.exec(output)?.[1] ?? '';
        expect(commands).toContain('curl ');
        expect(await machine.shell(commands)).toContain(DEMO_SENTENCES['demo-fox'].slice(0, 12));
      },
      300_000,
    );

    test('doctor says in four lines what is true of a healthy machine', async () => {
      await machine.shell(`sed -i 's/^SVC_AUTH_ENABLED=.*/SVC_AUTH_ENABLED=0/' /etc/svc/api.env; systemctl restart svc-api`);
      // The machines of tests have a low limit of open files.
      const text = await machine.shell('SVC_MAX_CONNECTIONS=1000 svcctl doctor');
      expect(text.split('\n').map((line) => line.split(/ +/)[0])).toEqual(['ok', 'ok', 'ok', 'ok']);
      expect(text).toMatch(/svc 0\.2\.0 answers at 0\.0\.0\.0:8080, runtime "process"/);
      expect(text).toMatch(/Everyone who reaches these addresses/);
      expect(text).toMatch(/free for models in "\/var\/lib\/svc\/models"/);
    }, 60_000);

    test('the unit is ready once the slots are known, says so, and names its documentation', async () => {
      await machine.shell('systemctl restart svc-api && curl --silent --fail http://127.0.0.1:8080/api/health/ready');
      const facts = await machine.shell('systemctl show --property Type,StatusText,Documentation svc-api');
      expect(facts).toMatch(/^Type=notify$/m);
      expect(facts).toMatch(/^StatusText=Answers at http:\/\/127\.0\.0\.1:8080, runtime "process"$/m);
      expect(facts).toMatch(/^Documentation=.*man:svcctl\(1\).*installing\.md/m);
      expect(await machine.shell('ls /opt/svc/current/docs/installing.md')).toContain('installing.md');
    }, 60_000);

    test('a server of an NPU may lock memory: the check of its program, started by the unit, reads the limit', async () => {
      // It says of this machine what it says of one with an NPU; only the limit is read.
      const stub = String.raw`#!/bin/sh
[ "$1" = validate ] || { echo '{"models":[]}'; exit; }
limit=$(awk '/^Max locked memory/ { print $4 }' /proc/self/limits)
ok=true; [ "$limit" = unlimited ] || [ "$limit" -ge 104857600 ] || ok=false
printf '{"object":"npu_stack_validation","kernel":"6.17.0","kernel_ok":true,"amd_device_found":true,"all_fw_ok":true,"enough_cols":true,"memlock_ok":%s,"memlock_limit":"%s","ready":%s}' $ok "$limit" $ok`;
      await machine.run(['bash', '-c', 'cat >/usr/local/bin/flm && chmod 755 /usr/local/bin/flm'], stub);
      const reason = async (): Promise<string> => {
        await machine.shell('systemctl daemon-reload && systemctl restart svc-api');
        const answer = await machine.shell('curl --silent --fail http://127.0.0.1:8080/api/providers');
        return JSON.parse(answer).providers.find(({ kind }: { readonly kind: string }) => kind === 'npu').reason;
      };
      await machine.shell(
        'mkdir -p /run/systemd/system/svc-api.service.d && printf "[Service]\nLimitMEMLOCK=1M\n" >/run/systemd/system/svc-api.service.d/low.conf',
      );
      expect(await reason()).toContain('locked memory is limited to 1048576 bytes, and 100 MiB are needed: set "LimitMEMLOCK=infinity"');
      await machine.shell('rm -r /run/systemd/system/svc-api.service.d');
      // A machine that is a container cannot raise the limit that its host set.
      const most = (await machine.shell(`awk '/^Max locked memory/ { print $5 }' /proc/1/limits`)).trim();
      const found = await reason();
      if (most === 'unlimited' || Number(most) >= 100 * 2 ** 20) expect(found).toContain('Runs as a process on this machine with "npu"');
      else expect(found).toContain(`locked memory is limited to ${most} bytes`);
      await machine.shell('rm /usr/local/bin/flm && systemctl restart svc-api');
    }, 120_000);

    test('the journal has the priority of each line', async () => {
      const warnings = await machine.shell('journalctl --unit svc-api --priority warning --output cat --no-pager');
      expect(warnings).toMatch(/^\{.*Anyone who can reach these addresses/m);
      expect(warnings).not.toContain('"Listening"');
      await machine.shell('journalctl --unit svc-api --output cat --no-pager | grep Listening | grep -v "^<"');
    }, 60_000);

    test('processes are called svc, and a terminal gets text', async () => {
      expect(await machine.shell(`cat /proc/${mainPid}/comm`)).toBe('svc');
      const serve = 'SVC_LISTEN=127.0.0.1:8099 SVC_CONFIG_DIR=/tmp/a SVC_STATE_DIR=/tmp/b timeout --signal INT 8 svcctl serve';
      const { output } = await machine.run(['script', '--quiet', '--command', serve, '/dev/null']);
      expect(output).toMatch(/Listening urls=\["http:\/\/127\.0\.0\.1:8099"\]/);
      expect(output).not.toContain('{"level"');
    }, 60_000);

    test('what needs no room works on a full disk, and a new release is refused', async () => {
      const little = async (command: string): Promise<Ran> => await machine.run(['bash', '-c', LITTLE_ROOM.replace('COMMAND', command)]);
      for (const options of ['', '--auth=off', '--chat=off'])
        expect(await little(`bash /opt/svc/current/installer/install.sh ${options}`)).toMatchObject({ code: 0 });
      expect(await little('bash /root/dist/install.sh')).toMatchObject({
        code: 1,
        output: expect.stringMatching(/^install\.sh: Free 800 MiB of disk space for "\/opt\/svc"/m),
      });
    }, 300_000);

    test('the next run removes what a killed installer has left', async () => {
      await machine.shell(`bash /root/dist/install.sh >/dev/null 2>&1 & installer=$!
        for i in $(seq 600); do ls /opt/svc/.new.*/svc-*/src >/dev/null 2>&1 && break; sleep 0.1; done
        kill -9 $installer; ls -d /opt/svc/.new.*; touch /etc/svc/.svc.abcdef /etc/systemd/system/.svc.abcdef
        while pgrep -x tar >/dev/null; do sleep 0.1; done`);
      expect(await install()).toMatchObject({ code: 0 });
      expect(await machine.shell('ls -d /opt/svc/.new.* /etc/svc/.svc.* /etc/systemd/system/.svc.* 2>/dev/null || true')).toBe('');
      expect(await install()).toMatchObject({ code: 0, output: expect.stringContaining('Nothing to change') });
    }, 300_000);

    test('--uninstall leaves what it lists, and lists what it leaves', async () => {
      const { code, output } = await install('--uninstall');
      expect({ code, output }).toMatchObject({ code: 0, output: expect.stringContaining('the user svc') });
      const listed = [...output.matchAll(/^ {2}(\/\S+) /gm)].map(([, name = '']) => name);
      expect(listed.toSorted()).toEqual(
        (await machine.shell('ls -d /etc/svc* /var/lib/svc* /var/cache/svc* /opt/svc* 2>/dev/null || true')).split('\n').toSorted(),
      );
      expect(await machine.run(['bash', '/root/dist/install.sh', '--uninstall', '--purge'])).toMatchObject({
        code: 0,
        output: expect.not.stringContaining('Still here'),
      });
    }, 300_000);

    // It takes minutes, and the package is the same on both machines: the newer lintian knows more.
    const lint = suite === 'trixie' ? test : undefined;
    lint?.(
      'lintian has nothing to say about the package but what it overrides',
      async () => {
        await machine.shell(`${APT_LISTS}; apt-get install -y -qq --no-install-recommends lintian >/dev/null 2>&1`);
        const { code, output } = await machine.run([
          'bash',
          '-c',
          'lintian --tag-display-limit 0 --fail-on error,warning /root/dist/svc_*.deb 2>/dev/null',
        ]);
        expect({ code, output }).toEqual({ code: 0, output: '' });
        expect(
          await machine.shell(`dpkg-deb --contents /root/dist/svc_*.deb | awk '{ print $4 }' | sort -u | grep -c '^1970' || true`),
        ).toBe('0');
      },
      900_000,
    );
  });
}
