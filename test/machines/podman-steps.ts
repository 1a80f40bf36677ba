/**
 * Slots in containers of a podman of the user svc, on a machine where they ran as processes. Its images are stand-ins
 * that podman has before: the engine of the release. Ends with slots in containers, which are removed with the service.
 */
import { expect, test } from '@jest/globals';
import { DEMO_SENTENCES } from '../../toolboxes/demo/demo-models.ts';
import type { Machine, Ran } from '../support/require/require-machine.ts';

const REBOOTS = 5;
export const AS_SVC = 'cd / && runuser -u svc -- env HOME=/var/lib/svc XDG_RUNTIME_DIR=/run/user/$(id -u svc)';

/** Node, its libraries and the engine are the whole image. Its id is pinned for every slot of text. */
export const MAKE_ENGINE_IMAGE = String.raw`
apt-get install -y -qq --no-install-recommends busybox-static >/dev/null 2>&1
root=$(mktemp -d) release=/opt/svc/current
mkdir -p $root/bin $root/tmp
cp /usr/bin/busybox $root/bin
cp -aL $release/node_modules/.bin/node $root/bin/node
cp -aL $release/toolboxes/embedded $root/engine
for file in $root/bin/node $(find $root/engine -name '*.node' -o -name '*.so*'); do ldd $file 2>/dev/null | grep -o '/[^ ]*' || true; done | grep -v "^$root" | sort -u |
  xargs cp -L --parents --target-directory $root
printf '#!/bin/busybox sh\nexec /bin/node /engine/main.ts --modules /engine/shipped "$@"\n' >$root/bin/llama-server
chmod -R a+rX,u+w $root && chmod 755 $root/bin/llama-server
id=$(tar -C $root -c . | (${AS_SVC} podman import --quiet - localhost/stand-in-engine:v1))
rm -rf $root
printf '[gguf.cpu]\nimage = "localhost/stand-in-engine:v1"\nid = "sha256:%s"\n' "$(sed s/sha256:// <<<$id)" >/etc/svc/toolboxes.toml`;

/** Machines in containers hide their devices, so that no backend counts as missing. */
export const USE_CPU = `sed -i 's/^enabled = true/enabled = false/' /etc/svc/slots/{stt,tts}.toml; sed -i '1i backend = "cpu"' /etc/svc/slots/{primary,embed}.toml`;

export function podmanSteps(machine: () => Machine): void {
  const install = async (options: string): Promise<Ran> =>
    await machine().run(['bash', '-c', `bash /opt/svc/current/installer/install.sh ${options} 2>&1`]);
  const containers = async (): Promise<string> => await machine().shell(`${AS_SVC} podman ps --format '{{.Names}}'`);
  const processes = async (): Promise<string> => await machine().shell('pgrep --full toolboxes/embedded/[m]ain.ts || true');
  /** Waits for the service, and as long as the slot loads. */
  const ask = async (): Promise<string> =>
    await machine()
      .shell(String.raw`for i in $(seq 600); do curl --silent --fail --output /dev/null http://127.0.0.1:8080/api/health/system && break; sleep 0.1; done
      curl --silent --show-error --max-time 120 http://127.0.0.1:8080/v1/chat/completions -H 'content-type: application/json' \
        -d '{"model":"primary","messages":[{"role":"user","content":"Hello"}],"max_tokens":40,"temperature":0}'`);

  test('--runtime=podman leaves slots as processes while an image is missing, and shows the error of podman', async () => {
    await machine().shell(USE_CPU);
    expect(await ask()).toContain(DEMO_SENTENCES['demo-fox'].slice(0, 12));
    const { code, output } = await install('--runtime=podman');
    expect({ code, output }).toMatchObject({ code: 1, output: expect.stringContaining('the image of gguf cpu could not be had') });
    expect(output).toMatch(/docker\.io\/library\/debian:forky-slim/);
    expect(output).toContain('To try again: sudo bash /opt/svc/current/installer/install.sh --runtime=podman');
    expect(await machine().shell('grep SVC_RUNTIME /etc/svc/api.env || true')).toBe('');
    expect(await processes()).not.toBe('');
    expect(await ask()).toContain(DEMO_SENTENCES['demo-fox'].slice(0, 12));
  }, 600_000);

  test('--runtime=podman runs slots in containers, ends their processes, and doing it again changes nothing', async () => {
    await machine().shell(MAKE_ENGINE_IMAGE);
    expect(await install('--runtime=podman')).toMatchObject({ code: 0, output: expect.stringContaining('set SVC_RUNTIME') });
    expect(await ask()).toContain(DEMO_SENTENCES['demo-fox'].slice(0, 12));
    await machine().shell('for i in $(seq 300); do pgrep --full toolboxes/embedded/[m]ain.ts || exit 0; sleep 0.1; done; exit 1');
    expect(await containers()).toContain('svc-slot-primary');
    expect(await machine().shell('cat /var/lib/svc/runtime.json')).toContain('"runtime": "podman"');
    expect(await install('--runtime=podman')).toMatchObject({ code: 0, output: expect.stringContaining('Nothing to change') });
    expect(await install('')).toMatchObject({ code: 0, output: expect.stringContaining('Nothing to change') });
  }, 600_000);

  test('"svcctl doctor" tells a rootless podman from a rootful one', async () => {
    const doctor = async (environment: string): Promise<string> =>
      (await machine().run(['bash', '-c', `${environment} svcctl doctor`])).output;
    expect(await doctor('')).toMatch(/ok +service .*"\/run\/user\/\d+\/podman\/podman\.sock" \(rootless\)/);
    await machine().shell('systemctl start podman.socket');
    expect(await doctor('SVC_PODMAN_SOCKET=/run/podman/podman.sock')).toContain('(rootful: whoever may use this socket is root)');
  }, 300_000);

  test(`after each of ${REBOOTS} reboots, slots answer from containers`, async () => {
    for (let reboot = 1; reboot <= REBOOTS; reboot += 1) {
      await machine().reboot();
      expect({ reboot, answer: await ask() }).toMatchObject({
        reboot,
        answer: expect.stringContaining(DEMO_SENTENCES['demo-fox'].slice(0, 12)),
      });
      expect({ reboot, containers: await containers(), processes: await processes() }).toMatchObject({
        reboot,
        containers: expect.stringContaining('svc-slot-primary'),
        processes: '',
      });
    }
  }, 900_000);
}
