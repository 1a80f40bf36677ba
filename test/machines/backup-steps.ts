/** Backup, restoration beside a running service, and files that belong to a former user svc. Ends with the service as it was. */
import { expect, test } from '@jest/globals';
import type { Machine } from '../support/require/require-machine.ts';

export function backupSteps(machine: () => Machine): void {
  const shell = async (script: string): Promise<string> => await machine().shell(script);

  test('a backup of the running service brings back profiles, tokens, settings and history with their owners', async () => {
    await shell('svcctl profile save before; runuser -u svc -- svcctl token create --label kept >/dev/null');
    expect(await shell('svcctl backup /root/svc-backup.tar.gz && stat -c %a /root/svc-backup.tar.gz')).toMatch(/\n600$/);
    const wanted = await shell('cd /etc/svc && sha256sum profiles/before/*.toml tokens.toml api.env');
    const owners = await shell('cd /etc/svc && stat -c "%n %U:%G %a" profiles/before/*.toml tokens.toml api.env');
    await shell(
      'svcctl profile delete before; rm /etc/svc/tokens.toml; rm -r /var/lib/svc/timelines; echo SVC_LOG_LEVEL=debug >>/etc/svc/api.env',
    );
    const { code, output } = await machine().run(['svcctl', 'restore', '/root/svc-backup.tar.gz']);
    expect({ code, output }).toMatchObject({ code: 0, output: expect.stringContaining('systemctl restart svc-api') });
    expect(await shell('cd /etc/svc && sha256sum profiles/before/*.toml tokens.toml api.env')).toBe(wanted);
    expect(await shell('cd /etc/svc && stat -c "%n %U:%G %a" profiles/before/*.toml tokens.toml api.env')).toBe(owners);
    expect(await shell('find /var/lib/svc/timelines -name primary.jsonl -user svc')).not.toBe('');
    expect(await shell('grep -rl SVC_LOG_LEVEL=debug /var/lib/svc/replaced')).toMatch(/config\/api\.env$/);
    expect(await shell('runuser -u svc -- svcctl token list')).toContain('kept');
    await shell(
      'rm -rf /var/lib/svc/replaced; svcctl profile delete before; rm -f /etc/svc/tokens.toml /root/svc-backup.tar.gz; systemctl restart svc-api',
    );
  }, 300_000);

  test('the installer gives files of a former user svc to the present one', async () => {
    await shell(`systemctl stop svc-api; find /etc/svc /var/lib/svc -user svc -exec chown --no-dereference 877:877 {} +; chgrp 877 /etc/svc/api.env
      echo mine >/var/lib/svc/models/mine.txt`);
    const { code, output } = await machine().run(['bash', '/opt/svc/current/installer/install.sh']);
    expect({ code, output }).toMatchObject({
      code: 0,
      output: expect.stringContaining('give files of a former user svc to the present one'),
    });
    expect(
      await shell('find /etc/svc /var/lib/svc -nouser -o -nogroup; stat -c "%U:%G %a" /etc/svc/api.env /var/lib/svc/models/mine.txt'),
    ).toBe('root:svc 640\nroot:root 644');
    expect(
      await shell(
        'rm /var/lib/svc/models/mine.txt; curl --silent --fail http://127.0.0.1:8080/api/health/system && svcctl get slots -o name',
      ),
    ).toContain('slot/primary');
    expect(await machine().run(['bash', '/opt/svc/current/installer/install.sh'])).toMatchObject({
      code: 0,
      output: expect.stringContaining('Nothing to change'),
    });
  }, 300_000);
}
