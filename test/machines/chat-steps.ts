/**
 * The chat page on a machine on which the service is installed without one. Its image is a stand-in that podman has before: it listens where it is told to, shows its
 * environment and the headers of a request, and asks the service with the token that it was given. Ends with the chat page removed and authentication off.
 */
import { expect, test } from '@jest/globals';
import { APT_LISTS, type Machine, type Ran } from '../support/require/require-machine.ts';

const IMAGE = 'localhost/stand-in-chat:v1';
const ADMIN = `SVC_ADMIN_USER=admin SVC_ADMIN_PASSWORD='correct horse' SVC_HOSTNAME=gpu-box.local`;
const ENV_FILE = '/etc/svc/chat.env';

/** Debian's static busybox is the whole image. */
export const MAKE_IMAGE = String.raw`
${APT_LISTS}
apt-get install -y -qq --no-install-recommends busybox-static runc >/dev/null 2>&1
# Machines for tests may not raise limits, as crun of Debian 12 does.
printf '[containers]\ndefault_ulimits = ["nofile=16384:16384", "nproc=4096:4096"]\npids_limit = 0\n[engine]\nruntime = "runc"\n' >/etc/containers/containers.conf.d/20-test.conf
root=$(mktemp -d)
mkdir -p $root/bin $root/www/cgi-bin $root/data $root/tmp
cp /usr/bin/busybox $root/bin
printf '#!/bin/busybox sh\n/bin/busybox mkdir -p "$DATA_DIR"\nexec /bin/busybox httpd -f -p "$HOST:$PORT" -h /www\n' >$root/start
printf '#!/bin/busybox sh\nprintf "content-type: text/plain\\r\\n\\r\\n"\n/bin/busybox env\n' >$root/www/cgi-bin/env
printf '#!/bin/busybox sh\nprintf "content-type: text/plain\\r\\n\\r\\n"\n/bin/busybox wget -S -q -O - --header "Authorization: Bearer $OPENAI_API_KEY" --header "content-type: application/json" --post-data "{\\"model\\":\\"primary\\",\\"messages\\":[]}" "$OPENAI_API_BASE_URL/chat/completions" 2>&1\n' >$root/www/cgi-bin/ask
chmod 755 $root/start $root/www/cgi-bin/*
tar -C $root -c . | podman import --quiet --change 'CMD ["/start"]' - ${IMAGE}
rm -rf $root`;

export function chatSteps(machine: () => Machine, snapshot: () => Promise<string>): void {
  const install = async (options: string, environment = ''): Promise<Ran> =>
    await machine().run(['bash', '-c', `${environment} bash /opt/svc/current/installer/install.sh ${options}`]);
  const page = async (path: string): Promise<string> =>
    await machine().shell(`for i in $(seq 100); do curl --silent --fail http://127.0.0.1:3001${path} && exit 0; sleep 0.1; done; exit 1`);
  const environment = async (): Promise<Record<string, string>> => environmentIn(await page('/cgi-bin/env'));
  const tokens = async (): Promise<string> => await machine().shell('runuser -u svc -- svcctl token list 2>/dev/null');

  test('a chat page whose image cannot be downloaded leaves the service installed, and the installer says how to try again', async () => {
    const { code, output } = await install('--chat-image registry.invalid/chat:1');
    expect({ code, output }).toMatchObject({
      code: 1,
      output: expect.stringMatching(/"podman pull registry\.invalid\/chat:1" failed: .*registry\.invalid/),
    });
    expect(output).toContain('To try again: sudo bash /opt/svc/current/installer/install.sh --chat-image registry.invalid/chat:1');
    expect((await fetch(`http://${machine().address}:8080/api/status`)).status).toBe(200);
    expect(await machine().shell(`ls ${ENV_FILE} /etc/systemd/system/svc-chat.service 2>/dev/null || true`)).toBe('');
  }, 600_000);

  test('--chat-image installs a chat page on port 3001, which is wired to the service for chat, speech, images and embeddings', async () => {
    await machine().shell(MAKE_IMAGE);
    expect(await install(`--chat-image ${IMAGE}`)).toMatchObject({ code: 0, output: expect.stringContaining(':3001/') });
    expect((await fetch(`http://${machine().address}:3001/cgi-bin/env`)).status).toBe(200);
    const api = 'http://127.0.0.1:8080/v1';
    expect(await environment()).toMatchObject({
      ENABLE_PERSISTENT_CONFIG: 'False',
      PORT: '3001',
      WEBUI_AUTH: 'False',
      DATA_DIR: '/data/open',
      OPENAI_API_BASE_URL: api,
      AUDIO_STT_OPENAI_API_BASE_URL: api,
      AUDIO_TTS_OPENAI_API_BASE_URL: api,
      IMAGES_OPENAI_API_BASE_URL: api,
      RAG_OPENAI_API_BASE_URL: api,
      OPENAI_API_KEY: 'none',
    });
    expect(await page('/cgi-bin/ask')).toMatch(/HTTP\/1\.1 (?:200|4(?!0[13])\d\d)/);
  }, 600_000);

  test('the chat page is closed with the service, also without the installer, and opened with it', async () => {
    const restartWith = async (line: string): Promise<void> => {
      await machine().shell(`sed -i '/^SVC_LISTEN=/d' /etc/svc/api.env; echo '${line}' >>/etc/svc/api.env; systemctl restart svc-api`);
      await page('/cgi-bin/env');
    };
    await restartWith('SVC_LISTEN=127.0.0.1:8080');
    await expect(fetch(`http://${machine().address}:3001/`)).rejects.toThrow('fetch failed');
    expect(await install('')).toMatchObject({ code: 0 });
    expect(await environment()).toMatchObject({ HOST: '127.0.0.1' });
    await restartWith('');
    expect((await fetch(`http://${machine().address}:3001/cgi-bin/env`)).status).toBe(200);
    expect(await install('')).toMatchObject({ code: 0, output: expect.stringContaining('Everyone who reaches these addresses') });
    await machine().shell('systemctl stop svc-api && systemctl start svc-api');
    expect(await environment()).toMatchObject({ HOST: '0.0.0.0' });
  }, 300_000);

  test('the container of the chat page has no capabilities, and its settings are readable for root only', async () => {
    const inspected = await machine().shell(
      `podman inspect --format '{{.HostConfig.NetworkMode}} {{.EffectiveCaps}} {{.HostConfig.SecurityOpt}}' svc-chat`,
    );
    expect(inspected).toMatch(/^host \[\] \[no-new-privileges\]$/);
    expect(await machine().shell(`stat -c '%U:%G %a' ${ENV_FILE}`)).toBe('root:root 600');
    // docs/security.md says so.
    const rating = await machine().shell('systemd-analyze security --no-pager svc-chat.service | tail -n 1');
    expect(Number(/: ([0-9.]+) /.exec(rating)?.[1] ?? NaN)).toBeLessThanOrEqual(9.8);
  });

  test('installing again changes nothing about the chat page, and keeps its image', async () => {
    await machine().shell(`echo MY_OWN=1 >>${ENV_FILE}`);
    const files = await snapshot();
    expect(await install('')).toMatchObject({ code: 0, output: expect.stringContaining('Nothing to change') });
    expect(await snapshot()).toBe(files);
  }, 300_000);

  test('--auth=basic gives the chat page a token of its own, another database, and no address but 127.0.0.1', async () => {
    expect(await install('--auth=basic', ADMIN)).toMatchObject({ code: 0 });
    await expect(fetch(`http://${machine().address}:3001/`)).rejects.toThrow('fetch failed');
    const env = await environment();
    expect(env).toMatchObject({
      WEBUI_AUTH: 'True',
      WEBUI_AUTH_TRUSTED_EMAIL_HEADER: 'X-Forwarded-Email',
      DATA_DIR: '/data/accounts',
      WEBUI_URL: 'https://gpu-box.local:3443',
      OPENAI_API_KEY: expect.stringMatching(/^svc_[0-9a-f]{8}\.[\w-]{43}$/),
      MY_OWN: '1',
    });
    const id = (env['OPENAI_API_KEY'] ?? '').slice(4, 12);
    expect(await tokens()).toMatch(new RegExp(`^${id} +v1-only .*chat-page$`, 'm'));
    expect(await page('/cgi-bin/ask')).toMatch(/HTTP\/1\.1 (?:200|4(?!0[13])\d\d)/);
    expect(await machine().shell(`stat -c '%U:%G %a' ${ENV_FILE}`)).toBe('root:root 600');
  }, 300_000);

  test('"/chat/" leads to the chat page, which gets the name of the user as an address, and the service names its origin', async () => {
    const curl = 'curl --silent --insecure --resolve gpu-box.local:443:127.0.0.1 --resolve gpu-box.local:3443:127.0.0.1';
    const jar = '--cookie-jar /tmp/jar --cookie /tmp/jar';
    const seen = await machine().shell(
      `${curl} ${jar} --user 'admin:correct horse' --output /dev/null https://gpu-box.local/chat/; ${curl} ${jar} --header 'X-Forwarded-Email: mallory@evil.test' https://gpu-box.local:3443/cgi-bin/env`,
    );
    expect(environmentIn(seen)['HTTP_X_FORWARDED_EMAIL']).toBe('admin@localhost');
    expect(JSON.parse(await machine().shell(`${curl} https://gpu-box.local/api/config/urls`))).toMatchObject({
      chat_url: 'https://gpu-box.local:3443/',
    });
  });

  test('a session of the chat page is listed, and ends with the password that began it', async () => {
    const curl = 'curl --silent --insecure --resolve gpu-box.local:443:127.0.0.1 --resolve gpu-box.local:3443:127.0.0.1';
    const enter = `${curl} --cookie /tmp/jar --output /dev/null --write-out '%{http_code}' https://gpu-box.local:3443/cgi-bin/env`;
    expect(await machine().shell(enter)).toBe('200');
    expect(await tokens()).toMatch(/chat session of admin$/m);
    const other = ADMIN.replace('correct horse', 'another horse');
    expect(await install('--auth=basic', other)).toMatchObject({
      code: 0,
      output: expect.stringContaining('end the sessions of the chat page'),
    });
    expect(await machine().shell(enter)).toBe('303');
    expect(await tokens()).not.toContain('chat session');
    expect(await install('--auth=basic', ADMIN)).toMatchObject({ code: 0 });
  }, 300_000);

  test('the token of the chat page is in no log and no argument of a program', async () => {
    const token = (await environment())['OPENAI_API_KEY'] ?? '';
    const secret = token.slice(13);
    expect(secret).toHaveLength(43);
    const places = [
      `cat /proc/[0-9]*/cmdline | tr '\\0' ' '`,
      'journalctl --no-pager',
      'cat /etc/svc/tokens.toml /etc/systemd/system/svc-chat.service',
    ];
    // The needle comes on standard input, so that the search itself does not show it.
    for (const place of places) {
      const { output } = await machine().run(
        ['bash', '-c', `read -r needle; (${place}) 2>/dev/null | grep -cF -f <(printf '%s' "$needle") || true`],
        `${secret}\n`,
      );
      expect([place, output.trim()]).toEqual([place, '0']);
    }
  });

  test('--auth=basic again changes nothing about the chat page', async () => {
    const files = await snapshot();
    expect(await install('--auth=basic')).toMatchObject({ code: 0, output: expect.stringContaining('Nothing to change') });
    expect(await snapshot()).toBe(files);
  }, 300_000);

  test('after a reboot, the chat page answers behind the proxy', async () => {
    await machine().reboot();
    expect(await environment()).toMatchObject({ WEBUI_AUTH: 'True', HOST: '127.0.0.1' });
    await machine().shell('systemctl is-active svc-api svc-proxy svc-chat');
  }, 300_000);

  test('the manual way back of the documentation opens the chat page again, and revokes its token', async () => {
    await machine().shell(`systemctl disable --now svc-proxy
      sed -i 's/^SVC_AUTH_ENABLED=.*/SVC_AUTH_ENABLED=0/' /etc/svc/api.env
      SVC_AUTH_ENABLED=0 bash /opt/svc/current/installer/render-chat-env.sh
      systemctl restart svc-api svc-chat`);
    expect(await environment()).toMatchObject({ WEBUI_AUTH: 'False', HOST: '0.0.0.0', OPENAI_API_KEY: 'none', MY_OWN: '1' });
    expect(await tokens()).not.toContain('chat-page');
  }, 300_000);

  test('--auth=off revokes the token of the chat page, and doing it again changes nothing', async () => {
    expect(await install('--auth=basic')).toMatchObject({ code: 0 });
    expect(await tokens()).toContain('chat-page');
    expect(await install('--auth=off')).toMatchObject({ code: 0 });
    expect(await tokens()).not.toContain('chat-page');
    expect((await fetch(`http://${machine().address}:3001/cgi-bin/env`)).status).toBe(200);
    expect(await environment()).toMatchObject({ DATA_DIR: '/data/open', OPENAI_API_KEY: 'none' });
    expect(await install('--auth=off')).toMatchObject({ code: 0, output: expect.stringContaining('Nothing to change') });
  }, 300_000);

  test('--chat=off removes the chat page and keeps its data, and doing it again changes nothing', async () => {
    expect(await install('--chat=off')).toMatchObject({ code: 0 });
    expect(await machine().shell('podman ps --all --quiet; ls /var/lib/svc-chat')).toBe('accounts\nopen');
    expect(await install('--chat=off')).toMatchObject({ code: 0, output: expect.stringContaining('Nothing to change') });
    expect(await install('')).toMatchObject({ code: 0, output: expect.stringContaining('Nothing to change') });
  }, 300_000);
}

function environmentIn(text: string): Record<string, string> {
  return Object.fromEntries([...text.matchAll(/^([A-Z_]+)=(.*)$/gm)].map(([, key = '', value = '']) => [key, value]));
}
