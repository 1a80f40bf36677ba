/** A service with all routes, a web server for pages of other sites, and a browser for both. */
import { createServer, type Server } from 'node:http';
import { chromium, type Browser, type Page } from 'playwright-core';
import { SlotName } from '../../src/schema/words/names.ts';
import { startWorld, type World } from '../api/manage/world.ts';
import { publish } from '../gateway/support/board-fixture.ts';
import { startUpstream, type FakeUpstream } from '../gateway/support/fake-upstream.ts';
import { startGateway, type GatewayFixture } from '../gateway/support/gateway-fixture.ts';
import { freePort } from '../support/free-port.ts';
import { BROWSER } from '../support/browser-path.ts';

export const PRIMARY = SlotName.parse('primary');
export const TEXT = 'backend = "cpu"\n[model]\ndefault = "demo-fox"\n';

export interface BrowserWorld {
  readonly gateway: GatewayFixture;
  readonly upstream: FakeUpstream;
  readonly manage: World;
  /** Requests to the service in order of arrival: `POST /api/apply`. */
  readonly arrived: string[];
  /**
   * Origins of a page that is not allowed, of one in `SVC_CORS_ORIGINS`, and of the service under an attacker's name.
   */
  readonly evil: string;
  readonly chat: string;
  readonly rebound: string;
  /** Lets the upstream finish a stream after its first event. */
  finishStream(): void;
  open(url: string): Promise<Page>;
  close(): Promise<void>;
}

const HOSTS = ['evil.test', 'chat.test', 'rebind.test'].map((name) => `MAP ${name} 127.0.0.1`).join(', ');
const FLAGS = [
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

export async function startBrowserWorld(): Promise<BrowserWorld> {
  const pages = await servePages();
  const chat = `http://chat.test:${pages.port}`;
  let finish = (): void => undefined;
  const upstream = await startUpstream({
    async answer({ body }, res) {
      if (!body.includes('"stream":true')) {
        res.writeHead(200, { 'content-type': 'application/json' }).end('{"choices":[{"message":{"content":"Hello"}}]}');
        return;
      }
      res.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: first\n\n');
      await new Promise<void>((resolve) => (finish = resolve));
      res.end('data: [DONE]\n\n');
    },
  });
  const manage = await startWorld();
  manage.slots.texts.set(PRIMARY, TEXT);
  const gateway = await startGateway({ routes: manage.routes, settings: { SVC_CORS_ORIGINS: chat } });
  publish(gateway.board, { name: 'primary', targets: [{ workload: 'w', port: upstream.port }] });
  const arrived: string[] = [];
  gateway.api.server.prependListener('request', (req) => void arrived.push(`${req.method} ${req.url}`));
  const browser = await chromium.launch({ executablePath: BROWSER, args: [...FLAGS, `--host-resolver-rules=${HOSTS}`] });
  return {
    gateway,
    upstream,
    manage,
    arrived,
    evil: `http://evil.test:${pages.port}`,
    chat,
    rebound: `http://rebind.test:${gateway.port}`,
    finishStream: () => finish(),
    open: async (url) => openPage(browser, url),
    async close() {
      await browser.close();
      pages.server.close();
      await gateway.close();
      await manage.close();
      await upstream.kill();
    },
  };
}

async function openPage(browser: Browser, url: string): Promise<Page> {
  const page = await (await browser.newContext()).newPage();
  await page.goto(url);
  return page;
}

/** Answers every path with an empty page. */
async function servePages(): Promise<{ readonly server: Server; readonly port: number }> {
  const server = createServer((_req, res) =>
    res.writeHead(200, { 'content-type': 'text/html' }).end('<!doctype html><title>A page</title>'),
  );
  const port = await freePort();
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  return { server, port };
}
