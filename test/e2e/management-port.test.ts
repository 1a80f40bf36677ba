/** A real service with a port for management: what each port answers, who may come in, and that both close. */
import { once } from 'node:events';
import { createServer } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { svcctl } from '../cli/run-svcctl.ts';
import { startService, type Service } from '../support/service.ts';

describe('a service with a port for management', () => {
  let service: Service;
  let management: string;
  beforeAll(async () => {
    const port = await freePort();
    management = `http://127.0.0.1:${port}`;
    const environment = { SVC_MANAGEMENT_LISTEN: `127.0.0.1:${port}`, SVC_AUTH_ENABLED: '1' };
    service = await startService({ runtime: 'process', environment });
  }, 120_000);
  afterAll(async () => await service.dispose(), 120_000);

  const statusOf = async (base: string, path: string): Promise<number> => (await fetch(`${base}${path}`)).status;

  test('answers models and probes on both ports, and the rest on one', async () => {
    await eventually('the first pass', async () => (await statusOf(service.url, '/api/health/ready')) === 200, 50_000);
    const paths = ['/v1/models', '/api/health/ready', '/api/health/system', '/api/status', '/api/metrics', '/api/slots'];
    expect(await Promise.all(paths.map(async (path) => statusOf(service.url, path)))).toEqual([200, 200, 200, 404, 404, 404]);
    expect(await Promise.all(paths.map(async (path) => statusOf(management, path)))).toEqual([200, 200, 200, 200, 200, 401]);
    const refused = await fetch(`${service.url}/api/slots`);
    expect(await refused.json()).toMatchObject({
      error: { code: 'route.not_found', message: expect.stringContaining('SVC_MANAGEMENT_LISTEN') },
    });
    expect(service.output()).toContain(`"managementUrl":"${management}"`);
  }, 60_000);

  test('lets svcctl manage through its socket and through the port, with the settings of the service', async () => {
    const { SVC_STATE_DIR: state = '', ...settings } = service.environment;
    const local = await svcctl(['get', 'slots'], { env: { ...settings, SVC_STATE_DIR: state } });
    expect(local).toMatchObject({ code: 0, err: expect.stringContaining('No slots found') });
    const other = await svcctl(['get', 'slots'], { env: { ...settings, SVC_TOKEN: 'svc_wrong' } });
    expect(other).toMatchObject({ code: 1, err: expect.stringContaining('unknown') });
  }, 60_000);

  test('closes both ports when it stops, also with an idle connection', async () => {
    expect(await statusOf(management, '/api/status')).toBe(200);
    await service.kill('SIGTERM');
    await expect(fetch(`${management}/api/status`)).rejects.toThrow();
    await expect(fetch(`${service.url}/v1/models`)).rejects.toThrow();
  }, 60_000);

  test('does not start where the port is taken, and names the setting', async () => {
    const taken = createServer().listen(Number(new URL(management).port), '127.0.0.1');
    await once(taken, 'listening');
    await expect(service.start()).rejects.toThrow('is already in use: free it, or set "SVC_MANAGEMENT_LISTEN" to another one');
    taken.close();
    await once(taken, 'close');
  }, 120_000);
});
