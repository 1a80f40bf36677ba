/** A service moves from one machine to another by the blocks of docs/backup.md: from Debian 12 to 13, whose user has another id. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { DEMO_SENTENCES } from '../../toolboxes/demo/demo-models.ts';
import { bootMachine, copyModels, describeWithMachine, type Machine } from '../support/require/require-machine.ts';
import { BLOCKS, MOVE, type } from './doc-steps.ts';

/** The other files of this folder may use both machines before. */
const WAIT_MS = 3_600_000;

describeWithMachine('Moving a service to another machine', () => {
  const machines: Machine[] = [];
  let token = '';
  const [from, to] = [(): Machine => at(0), (): Machine => at(1)];
  const at = (index: number): Machine => {
    const machine = machines[index];
    if (machine === undefined) throw new Error('The machine did not boot');
    return machine;
  };
  const ask = async (machine: Machine, credential: string): Promise<string> =>
    await machine.shell(String.raw`curl --silent --show-error --retry 60 --retry-delay 1 --retry-connrefused --output /dev/null http://127.0.0.1:8080/api/health/ready
      curl --silent --max-time 300 http://127.0.0.1:8080/v1/chat/completions -H 'authorization: Bearer ${credential}' \
        -H 'content-type: application/json' -d '{"model":"primary","messages":[{"role":"user","content":"Hello"}],"max_tokens":40,"temperature":0}'`);

  beforeAll(async () => {
    // Always in this order, so that nobody waits for each other.
    for (const suite of ['bookworm', 'trixie'] as const) machines.push(await bootMachine(suite));
    for (const machine of machines) {
      await machine.copy(process.env['SVC_TEST_RELEASE'] ?? '', '/root/dist');
      await machine.shell('echo force-unsafe-io >/etc/dpkg/dpkg.cfg.d/unsafe-io');
    }
    // On the new machine, the id of the user is another one, and that of the old one is taken.
    await to().shell('useradd --system other; useradd --system another');
    await from().shell('bash dist/install.sh --chat=off >/dev/null');
    await copyModels(from(), '/var/lib/svc/models');
    await from().shell(`chown -R svc:svc /var/lib/svc/models; svcctl slot load primary --model demo-fox --wait --timeout 5m
      sed -i 's/^SVC_AUTH_ENABLED=.*/SVC_AUTH_ENABLED=1/' /etc/svc/api.env; systemctl restart svc-api; svcctl profile save evening`);
    token = await from().shell('runuser -u svc -- svcctl token create --label laptop 2>/dev/null');
  }, WAIT_MS);
  afterAll(async () => {
    for (const machine of machines) await machine.down();
  }, 120_000);

  test('the old machine makes a backup without programs and models', async () => {
    expect(await ask(from(), token)).toContain(DEMO_SENTENCES['demo-fox'].slice(0, 12));
    expect(await type(from(), BLOCKS.get(MOVE.from) ?? '')).toMatchObject({ code: 0 });
    const members = await from().shell('tar --list --gzip --file svc-backup.tar.gz');
    expect(members).toContain('config/profiles/evening/primary.toml');
    expect(members).not.toMatch(/node_modules|\.gguf|\.js$|\.node$/m);
  }, 300_000);

  test('the new one has its slots, profiles, tokens and settings, and names the models to pull', async () => {
    const { output: archive } = await from().run(['base64', '--wrap=0', 'svc-backup.tar.gz']);
    await to().run(['bash', '-c', 'base64 --decode >svc-backup.tar.gz'], archive);
    const { code, output } = await type(to(), BLOCKS.get(MOVE.to) ?? '');
    expect({ code, output }).toMatchObject({ code: 0, output: expect.stringContaining('svcctl model pull demo-fox') });
    for (const list of [
      'svcctl profile list -o name',
      'svcctl get slots -o name',
      'runuser -u svc -- svcctl token list -o name',
      'cat /etc/svc/api.env',
    ])
      expect([list, await to().shell(list)]).toEqual([list, await from().shell(list)]);
    expect(await to().shell('find /etc/svc /var/lib/svc -nouser -o -nogroup')).toBe('');
    expect(await to().shell('stat -c "%U:%G %a" /etc/svc/api.env /etc/svc/tokens.toml')).toBe('root:svc 640\nsvc:svc 600');
    expect(await ask(to(), 'svc_00000000.none')).toContain('auth');
  }, 900_000);

  test('slots answer with the models of the old one, to the token of the old one', async () => {
    await copyModels(to(), '/var/lib/svc/models');
    expect(await ask(to(), token)).toContain(DEMO_SENTENCES['demo-fox'].slice(0, 12));
  }, 600_000);
});
