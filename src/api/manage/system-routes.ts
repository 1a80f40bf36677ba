/** The routes that need no credential even if authentication is on: they reveal no secret, and change nothing but the mark that installation is complete. */
import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { errorBody } from '../../schema/error-codes.ts';
import { ApiError } from '../api-error.ts';
import type { Route } from '../route.ts';
import { publicUrls } from './decide/public-urls.ts';
import { viewStatus } from './decide/status-view.ts';
import type { ManageDeps } from './manage-deps.ts';

/** There is a pass at every resync, so after four missed ones, and at least a minute, the loop counts as dead. */
const MISSED_RESYNCS = 4;
const LEAST_STALE_MS = 60_000;

/** A login form may send anything; it is not read. */
const AnyBody = z.unknown().describe('Ignored');

export function createSystemRoutes(deps: ManageDeps): readonly Route[] {
  return [...livenessRoutes(deps), ...discoveryRoutes(deps), ...installRoutes(deps), ...authRoutes(deps)];
}

function open(path: string, summary: string, handler: Route['handler']): Route {
  return { method: 'GET', path, access: 'open', tag: 'system', summary, handler };
}

/** Monitoring reaches these under any name, and they reveal nothing but the version and that the service runs. */
function health(path: string, summary: string, handler: Route['handler']): Route {
  return { ...open(path, summary, handler), anySite: true };
}

function livenessRoutes({ manage, settings, board, traffic, metrics, now }: ManageDeps): readonly Route[] {
  const uptimeSeconds = (): number => Math.max(0, Math.round((now() - manage.startedAt) / 1000));
  return [
    health(
      '/api/health/system',
      'Liveness for monitoring: 503 if the reconcile loop has not finished a pass for too long',
      (_request, reply) => {
        const ageMs = manage.lastPassAgeMs();
        const alive = ageMs <= Math.max(LEAST_STALE_MS, MISSED_RESYNCS * settings.SVC_RESYNC);
        const facts = { version: manage.version, uptime_seconds: uptimeSeconds(), last_pass_age_seconds: Math.round(ageMs / 1000) };
        if (alive) return { status: 'ok', ...facts };
        const message = `Read the log and restart the service: the reconcile loop has not finished a pass for ${facts.last_pass_age_seconds} s`;
        return reply.code(503).send({ status: 'failing', ...facts, ...errorBody('server.stalled', message) });
      },
    ),
    health('/api/health/ready', 'Readiness for load balancers: 503 until the first pass has found the slots', (_request, reply) => {
      if (board.current().version > 0) return { status: 'ok' };
      const message = 'Try again in a moment: the service has just been started';
      return reply.code(503).send({ status: 'starting', ...errorBody('server.starting', message) });
    }),
    open('/api/status', 'Version and one line per slot; never waits for a load', () => ({
      version: manage.version,
      runtime: manage.runtime,
      auth_enabled: settings.SVC_AUTH_ENABLED,
      uptime_seconds: uptimeSeconds(),
      slots: viewStatus(board.current(), traffic),
    })),
    open('/api/metrics', 'Metrics in Prometheus’ text format', async (_request, reply) =>
      reply.type(metrics.contentType).send(await metrics.text()),
    ),
  ];
}

function discoveryRoutes({ settings, features }: ManageDeps): readonly Route[] {
  return [
    open('/api/features', 'What this build and host support', () => ({ features: features() })),
    open('/api/config/urls', 'Addresses of the API and its companions, as seen by the caller', (request) => {
      const urls = publicUrls({
        publicUrl: settings.SVC_PUBLIC_URL,
        hostHeader: request.headers.host,
        secure: cameOverTls(request, settings.SVC_TRUSTED_PROXIES),
        authEnabled: settings.SVC_AUTH_ENABLED,
      });
      if (urls === undefined) throw new ApiError('request.invalid', 'Send a host name or address in "Host"', { param: 'Host' });
      return urls;
    }),
  ];
}

function installRoutes({ manage }: ManageDeps): readonly Route[] {
  return [
    open('/api/install/state', 'Whether the installation is complete, and the remaining steps', () => manage.installState()),
    {
      ...open('/api/install/complete', 'Marks the installation as complete', async () => {
        await manage.completeInstall();
        return manage.installState();
      }),
      method: 'POST',
    },
  ];
}

function authRoutes({ settings }: ManageDeps): readonly Route[] {
  const enabled = settings.SVC_AUTH_ENABLED;
  const status = open('/api/auth/status', 'Which credentials the service accepts; reveals none', () => ({
    auth_enabled: enabled,
    mode: enabled ? 'basic' : 'off',
    methods: enabled ? ['bearer', 'forwarded-email'] : [],
  }));
  const login = open('/api/auth/login', 'Placeholder: the reverse proxy performs the login', () => ({
    auth_enabled: enabled,
    message: enabled
      ? 'Log in at the reverse proxy, which asks for name and password; programs send a bearer token'
      : 'No login is needed: authentication is off',
  }));
  return [
    { ...status, tag: 'auth' },
    { ...login, tag: 'auth', method: 'POST', schemas: { body: AnyBody } },
  ];
}

/** Returns whether the client used TLS according to a trusted proxy; the header of any other peer is ignored. */
function cameOverTls(request: FastifyRequest, trusted: readonly string[]): boolean {
  const peer = request.socket.remoteAddress?.replace(/^::ffff:/, '') ?? '';
  return trusted.includes(peer) && request.headers['x-forwarded-proto'] === 'https';
}
