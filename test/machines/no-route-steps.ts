/** The service in a network namespace without a route, right after the first installation. Ends with the service as it was. */
import { expect, test } from '@jest/globals';
import type { Machine } from '../support/require/require-machine.ts';

/** What people wait for before they take a service for broken. */
const SECONDS = 5;
const DROP_IN = '/run/systemd/system/svc-api.service.d/no-route.conf';

export function noRouteSteps(machine: () => Machine): void {
  test(`without a route, the first question is answered within ${SECONDS} s with the cause`, async () => {
    const inside = 'nsenter --net=/run/netns/no-route curl --silent --show-error';
    await machine().shell(`ip netns add no-route && ip -n no-route link set lo up && mkdir -p $(dirname ${DROP_IN})
      printf '[Service]\\nNetworkNamespacePath=/run/netns/no-route\\n' >${DROP_IN}; systemctl daemon-reload; systemctl restart svc-api
      for i in $(seq 600); do ${inside} --fail --output /dev/null http://127.0.0.1:8080/api/health/system 2>/dev/null && break; sleep 0.1; done`);
    const { code, output } = await machine().run([
      'bash',
      '-c',
      `${inside} --max-time ${SECONDS} http://127.0.0.1:8080/v1/chat/completions -H 'content-type: application/json' -d '{"messages":[{"role":"user","content":"Hello"}]}'`,
    ]);
    await machine().shell(`rm -r $(dirname ${DROP_IN}); systemctl daemon-reload; systemctl restart svc-api; ip netns delete no-route`);
    expect({ code, output }).toMatchObject({
      code: 0,
      output: expect.stringMatching(/"code":"slot\.loading".*check the network|check the network.*"code":"slot\.loading"/),
    });
  }, 300_000);
}
