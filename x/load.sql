COPY trips FROM 'x/trips_lance1.csv' (FORMAT 'csv', quote '"', delimiter ',', header 1);

