/** The routes that are open even when authentication is on: they reveal no credential and change nothing but the first-run mark. */
import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { errorBody } from '../../schema/error-codes.ts';
import { ApiError } from '../api-error.ts';
import type { Route } from '../route.ts';
import { publicUrls } from './decide/public-urls.ts';
import { viewStatus } from './decide/status-view.ts';
import type { ManageDeps } from './manage-deps.ts';

/** A pass must come at every resync; after four that did not, and never before a minute, the loop counts as dead. */
const MISSED_RESYNCS = 4;
const LEAST_STALE_MS = 60_000;

/** What a login form would send; nothing of it is read. */
const AnyBody = z.unknown().describe('Ignored');

export function createSystemRoutes(deps: ManageDeps): readonly Route[] {
  return [...livenessRoutes(deps), ...discoveryRoutes(deps), ...installRoutes(deps), ...authRoutes(deps)];
}

function livenessRoutes(deps: ManageDeps): readonly Route[] {
  const { manage, settings } = deps;
  const uptimeSeconds = (): number => Math.max(0, Math.round((deps.now() - manage.startedAt) / 1000));
  return [
    {
      method: 'GET',
      path: '/api/health/system',
      access: 'open',
      tag: 'system',
      summary: 'Liveness for monitoring: 503 when the reconcile loop has not finished a pass for too long',
      handler(_request, reply) {
        const ageMs = manage.lastPassAgeMs();
        const alive = ageMs <= Math.max(LEAST_STALE_MS, MISSED_RESYNCS * settings.SVC_RESYNC);
        const facts = { version: manage.version, uptime_seconds: uptimeSeconds(), last_pass_age_seconds: Math.round(ageMs / 1000) };
        if (alive) return { status: 'ok', ...facts };
        const message = `The reconcile loop has not finished a pass for ${facts.last_pass_age_seconds} s; see the log, and restart the service`;
        return reply.code(503).send({ status: 'failing', ...facts, ...errorBody('server.stalled', message) });
      },
    },
    {
      method: 'GET',
      path: '/api/health/ready',
      access: 'open',
      tag: 'system',
      summary: 'Readiness for load balancers: 503 until the first pass has shown which slots there are',
      handler(_request, reply) {
        if (deps.board.current().version > 0) return { status: 'ok' };
        return reply
          .code(503)
          .send({ status: 'starting', ...errorBody('server.starting', 'Ask again in a moment: it has just been started') });
      },
    },
    {
      method: 'GET',
      path: '/api/status',
      access: 'open',
      tag: 'system',
      summary: 'Version and one line a slot; never waits on a load',
      handler: () => ({
        version: manage.version,
        runtime: manage.runtime,
        auth_enabled: settings.SVC_AUTH_ENABLED,
        uptime_seconds: uptimeSeconds(),
        slots: viewStatus(deps.board.current(), deps.traffic),
      }),
    },
    {
      method: 'GET',
      path: '/api/metrics',
      access: 'open',
      tag: 'system',
      summary: 'Metrics in Prometheus’ text format',
      handler: async (_request, reply) => reply.type(deps.metrics.contentType).send(await deps.metrics.text()),
    },
  ];
}

function discoveryRoutes({ settings, features }: ManageDeps): readonly Route[] {
  return [
    {
      method: 'GET',
      path: '/api/features',
      access: 'open',
      tag: 'system',
      summary: 'What this build and host can do',
      handler: () => ({ features: features() }),
    },
    {
      method: 'GET',
      path: '/api/config/urls',
      access: 'open',
      tag: 'system',
      summary: 'Addresses of the API and its companions, as seen from the caller',
      handler(request) {
        const urls = publicUrls({
          publicUrl: settings.SVC_PUBLIC_URL,
          hostHeader: request.headers.host,
          secure: cameOverTls(request, settings.SVC_TRUSTED_PROXIES),
          authEnabled: settings.SVC_AUTH_ENABLED,
        });
        if (urls === undefined) throw new ApiError('request.invalid', 'Send a host name or address in "Host"', { param: 'Host' });
        return urls;
      },
    },
  ];
}

function installRoutes({ manage }: ManageDeps): readonly Route[] {
  return [
    {
      method: 'GET',
      path: '/api/install/state',
      access: 'open',
      tag: 'system',
      summary: 'Whether the first run is over, and what is left to do',
      handler: () => manage.installState(),
    },
    {
      method: 'POST',
      path: '/api/install/complete',
      access: 'open',
      tag: 'system',
      summary: 'Marks the first run as over',
      async handler() {
        await manage.completeInstall();
        return manage.installState();
      },
    },
  ];
}

function authRoutes({ settings }: ManageDeps): readonly Route[] {
  const enabled = settings.SVC_AUTH_ENABLED;
  return [
    {
      method: 'GET',
      path: '/api/auth/status',
      access: 'open',
      tag: 'auth',
      summary: 'Which credentials the service wants; reveals none',
      handler: () => ({ auth_enabled: enabled, mode: enabled ? 'basic' : 'off', methods: enabled ? ['bearer', 'forwarded-email'] : [] }),
    },
    {
      method: 'POST',
      path: '/api/auth/login',
      access: 'open',
      tag: 'auth',
      summary: 'Placeholder: the reverse proxy performs the real login',
      schemas: { body: AnyBody },
      handler: () => ({
        auth_enabled: enabled,
        message: enabled
          ? 'Log in at the reverse proxy: it asks for your name and password; programs send a bearer token'
          : 'No login is needed: authentication is off',
      }),
    },
  ];
}

/** Only a trusted proxy is believed when it says how the request came to it. */
function cameOverTls(request: FastifyRequest, trusted: readonly string[]): boolean {
  const peer = request.socket.remoteAddress?.replace(/^::ffff:/, '') ?? '';
  return trusted.includes(peer) && request.headers['x-forwarded-proto'] === 'https';
}
