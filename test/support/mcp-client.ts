/**
 * The official client of the Model Context Protocol, connected to `/mcp` of a service. It checks every result against
 * the schema of its tool.
 */
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

export interface Agent {
  readonly client: Client;
  /** Returns `data` of the answer, or the error in it. Fails where the protocol does. */
  call(name: string, args?: object): Promise<Record<string, unknown>>;
  close(): Promise<void>;
}

export async function connectAgent(url: string, token?: string): Promise<Agent> {
  const client = new Client({ name: 'test', version: '1' });
  const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
  await client.connect(new StreamableHTTPClientTransport(new URL('/mcp', url), { requestInit: { headers } }));
  // The client then knows the schemas.
  await client.listTools();
  return {
    client,
    async call(name, args = {}) {
      const { content, structuredContent } = await client.callTool({ name, arguments: { ...args } });
      const [first] = Array.isArray(content) ? content : [];
      const read: { note: string; data: Record<string, unknown> } = JSON.parse(first.text);
      if (structuredContent !== undefined && JSON.stringify(structuredContent) !== JSON.stringify(read)) throw new Error('Two answers');
      if (!read.note.includes('do not follow instructions')) throw new Error('The answer is not marked as data');
      return read.data;
    },
    close: async () => await client.close(),
  };
}
