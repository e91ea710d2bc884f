// Asks a server by Go's ADBC driver and by database/sql, and prints one line "name = answer" for each question.
package main

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/apache/arrow-adbc/go/adbc"
	"github.com/apache/arrow-adbc/go/adbc/driver/flightsql"
	_ "github.com/apache/arrow-adbc/go/adbc/sqldriver/flightsql" // registers the name "flightsql"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

func say(name string, ask func() (any, error)) {
	answer, err := ask()
	if err != nil {
		answer = "error: " + err.Error()
	}
	fmt.Printf("%s = %s\n", name, strings.ReplaceAll(fmt.Sprint(answer), "\n", " "))
}

func main() {
	uri, user, key, table := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	ctx := context.Background()
	askDriver(ctx, map[string]string{
		adbc.OptionKeyURI: uri, adbc.OptionKeyUsername: user, adbc.OptionKeyPassword: key,
	}, table)
	askDatabase(ctx, fmt.Sprintf("uri=%s;username=%s;password=%s", uri, user, key), table)
	say("token", func() (any, error) {
		return firstOf(ctx, map[string]string{
			adbc.OptionKeyURI: uri, flightsql.OptionAuthorizationHeader: "Bearer " + key,
		}, "SELECT current_user")
	})
	say("wrong key", func() (any, error) {
		return firstOf(ctx, map[string]string{
			adbc.OptionKeyURI: uri, adbc.OptionKeyUsername: user, adbc.OptionKeyPassword: "sqe_wrong",
		}, "SELECT 1")
	})
}

func open(ctx context.Context, login map[string]string) (adbc.Connection, error) {
	database, err := flightsql.NewDriver(memory.DefaultAllocator).NewDatabase(login)
	if err != nil {
		return nil, err
	}
	return database.Open(ctx)
}

// firstOf is the first value of the first row.
func firstOf(ctx context.Context, login map[string]string, query string) (any, error) {
	connection, err := open(ctx, login)
	if err != nil {
		return nil, err
	}
	defer connection.Close()
	rows, err := fetch(ctx, connection, query)
	if err != nil {
		return nil, err
	}
	return rows[0], nil
}

// fetch returns the rows of a query, each as its values between bars.
func fetch(ctx context.Context, connection adbc.Connection, query string) ([]string, error) {
	statement, err := connection.NewStatement()
	if err != nil {
		return nil, err
	}
	defer statement.Close()
	if err := statement.SetSqlQuery(query); err != nil {
		return nil, err
	}
	return read(ctx, statement)
}

func read(ctx context.Context, statement adbc.Statement) ([]string, error) {
	reader, _, err := statement.ExecuteQuery(ctx)
	if err != nil {
		return nil, err
	}
	defer reader.Release()
	var rows []string
	for reader.Next() {
		batch := reader.RecordBatch()
		for row := range int(batch.NumRows()) {
			values := make([]string, batch.NumCols())
			for column := range values {
				values[column] = batch.Column(column).ValueStr(row)
			}
			rows = append(rows, strings.Join(values, "|"))
		}
	}
	return rows, reader.Err()
}

func people(first, count int) arrow.RecordBatch {
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
		{Name: "name", Type: arrow.BinaryTypes.String, Nullable: true},
	}, nil)
	builder := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer builder.Release()
	for number := range count {
		builder.Field(0).(*array.Int64Builder).Append(int64(first + number))
		if number == 1 {
			builder.Field(1).AppendNull()
		} else {
			builder.Field(1).(*array.StringBuilder).Append(fmt.Sprintf("gö %d", number))
		}
	}
	return builder.NewRecordBatch()
}

func askDriver(ctx context.Context, login map[string]string, table string) {
	connection, err := open(ctx, login)
	if err != nil {
		fmt.Println("open = error:", err)
		return
	}
	defer connection.Close()
	statement, err := connection.NewStatement()
	if err != nil {
		fmt.Println("statement = error:", err)
		return
	}
	defer statement.Close()
	update := func(query string) func() (any, error) {
		return func() (any, error) {
			if err := statement.SetSqlQuery(query); err != nil {
				return nil, err
			}
			return statement.ExecuteUpdate(ctx)
		}
	}
	say("select", func() (any, error) {
		return fetch(ctx, connection, `
			SELECT 1 AS one, 'ü€😀' AS text, CAST(1.25 AS decimal(5,2)) AS n, DATE '2026-01-02' AS d, ARRAY[1, NULL] AS a`)
	})
	say("create", update("CREATE TABLE "+table+" (id bigint, name varchar)"))
	say("insert", update("INSERT INTO "+table+" VALUES (1, 'ada'), (2, 'bob')"))
	say("prepared insert", func() (any, error) {
		if err := statement.SetSqlQuery("INSERT INTO " + table + " VALUES (?, ?)"); err != nil {
			return nil, err
		}
		if err := statement.Prepare(ctx); err != nil {
			return nil, err
		}
		rows := people(3, 2)
		defer rows.Release()
		if err := statement.Bind(ctx, rows); err != nil {
			return nil, err
		}
		return statement.ExecuteUpdate(ctx)
	})
	say("parameters", func() (any, error) {
		schema, err := statement.GetParameterSchema()
		if err != nil {
			return nil, err
		}
		return fmt.Sprint(schema.Field(0).Type, " ", schema.Field(1).Type), nil
	})
	say("ingest", func() (any, error) {
		ingest, err := connection.NewStatement()
		if err != nil {
			return nil, err
		}
		defer ingest.Close()
		if err := ingest.SetOption(adbc.OptionKeyIngestTargetTable, table); err != nil {
			return nil, err
		}
		if err := ingest.SetOption(adbc.OptionKeyIngestMode, adbc.OptionValueIngestModeAppend); err != nil {
			return nil, err
		}
		rows := people(1000, 10_000)
		defer rows.Release()
		if err := ingest.Bind(ctx, rows); err != nil {
			return nil, err
		}
		return ingest.ExecuteUpdate(ctx)
	})
	say("rows", func() (any, error) {
		return fetch(ctx, connection, "SELECT id, name FROM "+table+" WHERE id < 1000 ORDER BY id")
	})
	say("count", func() (any, error) {
		return fetch(ctx, connection, "SELECT count(*), count(name) FROM "+table)
	})
	say("many rows", func() (any, error) {
		rows, err := fetch(ctx, connection, "SELECT id FROM range(200000) AS r(id)")
		return len(rows), err
	})
	say("schema", func() (any, error) {
		schema, err := connection.GetTableSchema(ctx, nil, nil, table)
		if err != nil {
			return nil, err
		}
		return fmt.Sprint(schema.Field(0).Name, " ", schema.Field(0).Type, " ", schema.Field(1).Type), nil
	})
	say("objects", func() (any, error) {
		reader, err := connection.GetObjects(ctx, adbc.ObjectDepthTables, nil, nil, &table, nil, nil)
		if err != nil {
			return nil, err
		}
		defer reader.Release()
		found := 0
		for reader.Next() {
			batch := reader.RecordBatch()
			for row := range int(batch.NumRows()) {
				found += strings.Count(batch.Column(1).ValueStr(row), table)
			}
		}
		return found, reader.Err()
	})
	say("table types", func() (any, error) {
		reader, err := connection.GetTableTypes(ctx)
		if err != nil {
			return nil, err
		}
		defer reader.Release()
		var types []string
		for reader.Next() {
			for row := range int(reader.RecordBatch().NumRows()) {
				types = append(types, reader.RecordBatch().Column(0).ValueStr(row))
			}
		}
		return types, reader.Err()
	})
	say("missing", func() (any, error) { return fetch(ctx, connection, "SELECT * FROM nowhere") })
	say("deadline", func() (any, error) {
		short, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		began := time.Now()
		_, err := fetch(short, connection, `
			SELECT count(*) FROM range(4000000) AS a(x) JOIN range(9000000) AS b(y) ON x <> y`)
		return fmt.Sprint(err != nil, " ", time.Since(began) < 10*time.Second), nil
	})
}

func askDatabase(ctx context.Context, source string, table string) {
	database, err := sql.Open("flightsql", source)
	if err != nil {
		fmt.Println("database = error:", err)
		return
	}
	defer database.Close()
	say("database/sql ping", func() (any, error) { return nil, database.PingContext(ctx) })
	say("database/sql query", func() (any, error) {
		// With parameters the driver wants a prepared statement.
		prepared, err := database.PrepareContext(ctx, "SELECT id, name FROM "+table+" WHERE id < ? ORDER BY id")
		if err != nil {
			return nil, err
		}
		defer prepared.Close()
		rows, err := prepared.QueryContext(ctx, int64(4))
		if err != nil {
			return nil, err
		}
		defer rows.Close()
		var found []string
		for rows.Next() {
			var id int64
			var name sql.NullString
			if err := rows.Scan(&id, &name); err != nil {
				return nil, err
			}
			found = append(found, fmt.Sprint(id, ":", name.String))
		}
		return found, rows.Err()
	})
	say("database/sql exec", func() (any, error) {
		result, err := database.ExecContext(ctx, "DELETE FROM "+table+" WHERE id >= 1000")
		if err != nil {
			return nil, err
		}
		return result.RowsAffected()
	})
	say("database/sql values", func() (any, error) {
		var when time.Time
		var ok bool
		var ratio float64
		var raw []byte
		row := database.QueryRowContext(ctx, `
			SELECT TIMESTAMP '2026-01-02 03:04:05.000006', true, CAST(0.5 AS double), X'00FF'`)
		if err := row.Scan(&when, &ok, &ratio, &raw); err != nil {
			return nil, err
		}
		return fmt.Sprint(when.Format(time.RFC3339Nano), " ", ok, " ", ratio, " ", raw), nil
	})
	say("database/sql transaction", func() (any, error) {
		_, err := database.BeginTx(ctx, nil)
		return nil, err
	})
}
