/**
 * What prometheus-adapter does, without Prometheus: serves `svc_slot_requests` of the API group external.metrics.k8s.io, the sum over the gateways of the requests
 * in flight at a slot and those that wait for it. Runs in a pod, with the gateways' addresses in GATEWAYS and a certificate in /tls.
 */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';

const GROUP_VERSION = 'external.metrics.k8s.io/v1beta1';
const METRIC = 'svc_slot_requests';
/** The API server takes the group for available if it has a list of resources, and clients take an empty one for a fault. */
const RESOURCE = { name: METRIC, singularName: '', namespaced: true, kind: 'ExternalMetricValueList', verbs: ['get'] };
const gateways = (process.env['GATEWAYS'] ?? '').split(',');
const options = { key: readFileSync('/tls/tls.key'), cert: readFileSync('/tls/tls.crt') };

createServer(options, (request, response) => {
  const reply = (status, body) => {
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(JSON.stringify(body));
  };
  answer(new URL(request.url ?? '/', 'https://localhost')).then(
    (body) => reply(body === undefined ? 404 : 200, body ?? {}),
    (error) => reply(500, { kind: 'Status', apiVersion: 'v1', status: 'Failure', message: String(error), code: 500 }),
  );
}).listen(8443);

async function answer({ pathname, searchParams }) {
  if (pathname === `/apis/${GROUP_VERSION}`)
    return { kind: 'APIResourceList', apiVersion: 'v1', groupVersion: GROUP_VERSION, resources: [RESOURCE] };
  const slot = /^slot=([a-z0-9-]+)$/.exec(searchParams.get('labelSelector') ?? '')?.[1];
  if (!pathname.endsWith(`/${METRIC}`) || slot === undefined) return undefined;
  const sums = await Promise.all(gateways.map((gateway) => requestsAt(gateway, slot)));
  const value = String(sums.reduce((all, each) => all + each, 0));
  const item = { metricName: METRIC, metricLabels: { slot }, timestamp: new Date().toISOString(), value };
  return { kind: 'ExternalMetricValueList', apiVersion: GROUP_VERSION, metadata: {}, items: [item] };
}

async function requestsAt(gateway, slot) {
  const text = await (await fetch(`${gateway}/api/metrics`)).text();
  const lines = text.split('\n').filter((line) => /^svc_(inflight|parked)\{/.test(line) && line.includes(`slot="${slot}"`));
  if (lines.length !== 2) throw new Error(`The gateway ${gateway} does not export the requests at slot "${slot}"`);
  return lines.reduce((all, line) => all + Number(line.split(' ').at(-1)), 0);
}
